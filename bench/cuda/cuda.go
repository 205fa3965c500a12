// Package cuda is a GPU as a bench.Device, through the CUDA driver.
//
// It is built with the tag cuda alone (make build-cuda), since its binding,
// github.com/mumax/3/cuda/cu, is under the GPL. Nothing of CUDA is needed to build it:
// the header is include/cuda.h, lib/libcuda.so a linker script, and calls.c forwards
// every call of the driver to its library, opened when a device is. Without the tag, or
// without a driver, Open says so.
package cuda

import "errors"

var (
	// ErrNotBuilt says that the program was built without this package's own part.
	ErrNotBuilt = errors.New("this kgen was built without the GPU backend: make build-cuda builds one with it")

	// ErrNoDriver says that the machine has no driver, or none that works.
	ErrNoDriver = errors.New("no NVIDIA driver")
)

// Info is what there is.
type Info struct {
	Driver  int   // the driver's CUDA version: 13000 for 13.0
	Devices []GPU // by number
}

// GPU is one.
type GPU struct {
	Name         string
	Major, Minor int // compute capability
	SMs          int
}

// Error is a call of the driver that failed.
type Error struct {
	Call string // "cuMemAlloc"
	Code int    // CUresult
	Text string // the driver's own
}

func (e *Error) Error() string { return e.Call + ": " + e.Text }
