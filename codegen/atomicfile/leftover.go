package atomicfile

import (
	"os"
	"path/filepath"
	"regexp"
	"time"
)

var leftover = regexp.MustCompile(`^` + regexp.QuoteMeta(Unfinished) + `[0-9a-f]+$`)

// sweep removes what killed processes left in a folder. It is best effort: what
// fails is tried again by the next to write there.
func sweep(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if !leftover.MatchString(name) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandoned && !held(path) {
			os.Remove(path)
		}
	}
}
