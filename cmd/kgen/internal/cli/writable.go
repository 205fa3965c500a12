package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// stateEnv names the environment variable that replaces the state folder.
const stateEnv = "KGEN_STATE"

// checkWritable tries whether files can be made in dir or, while it does not
// exist, in the folder that it would be made in.
func checkWritable(dir string) error {
	for {
		fi, err := os.Stat(dir)
		parent := filepath.Dir(dir)
		if errors.Is(err, os.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return fmt.Errorf("%s is a file", dir)
		}
		break
	}
	f, err := os.CreateTemp(dir, ".kgen-doctor-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
