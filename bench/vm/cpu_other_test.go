//go:build !unix

package vm_test

import "time"

var start = time.Now()

func cpuTime() time.Duration { return time.Since(start) }
