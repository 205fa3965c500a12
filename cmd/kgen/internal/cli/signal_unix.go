//go:build unix

package cli

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// ignoreFileSizeSignal makes a file beyond the limit of its size an error of the
// write, like a full disk, and no crash.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }

// ownGroup starts a command outside of the terminal's group of processes, so that no
// Ctrl-C reaches it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
