//go:build !unix

package store

import "os"

// lock makes the lock file, without a lock: two processes that find one damaged
// store at the same moment may both set it aside. SQLite's own locks hold.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}
