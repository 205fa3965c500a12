//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreFileSizeSignal makes a file beyond the limit of its size an error of the
// write, like a full disk, and no crash.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
