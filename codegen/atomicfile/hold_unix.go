//go:build unix

package atomicfile

import (
	"os"
	"syscall"
	"time"
)

// abandoned is how long a file that nobody holds has not been written to: longer than
// one takes from being made to being held.
const abandoned = 10 * time.Second

// hold marks a file as being written until release, or the end of the process. Where a
// file system has no locks, an old file may pass for a leftover.
func hold(path string) (release func()) {
	f, err := os.Open(path)
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return func() { f.Close() }
}

// held tells whether somebody writes the file.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
