package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// write puts a result on standard output, for "" and "-", or in a file that is
// replaced in one step.
func (a *app) write(file string, data []byte) error {
	if file == "" || file == "-" {
		_, err := a.out.Write(data)
		return err
	}
	return writeFile(file, data)
}

// writeFile replaces a file in one step, so that a reader, a kill or a full
// disk never leave half of it. A device or pipe is written as it is.
func writeFile(name string, data []byte) error {
	file, err := outputPath(name)
	if err != nil {
		return err
	}
	if err := replaceFile(file, data); err != nil {
		var path *fs.PathError // which may be of the file beside
		if errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("-o %s: %w", name, err)
	}
	return nil
}

func replaceFile(file string, data []byte) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(file, data, 0o666)
	}
	temp := fmt.Sprintf("%s.%08x.tmp", file, rand.Uint32())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// wantFolder refuses a folder's name that is a file's.
func wantFolder(flag, dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usagef("--%s %s: a file: want a folder", flag, dir)
	}
	return nil
}

// outputPath follows links, and refuses what no file can be written to.
func outputPath(file string) (string, error) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return "", usagef("-o %s: a folder: want a file", file)
	case err == nil:
		return file, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	switch info, err := os.Stat(filepath.Dir(file)); {
	case errors.Is(err, fs.ErrNotExist):
		return "", usagef("-o %s: no folder %s", file, filepath.Dir(file))
	case err == nil && !info.IsDir():
		return "", usagef("-o %s: %s is a file: want a folder", file, filepath.Dir(file))
	}
	return file, nil
}
