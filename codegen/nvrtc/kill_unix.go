//go:build unix

package nvrtc

import (
	"os"
	"os/exec"
	"syscall"
)

// killWithChildren gives a command a process group of its own, which is killed
// whole: a wrapper's children do not live on.
func killWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err == syscall.ESRCH {
			return os.ErrProcessDone
		} else if err != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
}
