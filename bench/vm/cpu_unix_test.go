//go:build unix

package vm_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process so far: what a benchmark's rate
// is divided by, so that a busy machine does not matter.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
