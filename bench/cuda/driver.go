//go:build cuda && cgo && linux

package cuda

/*
#cgo CFLAGS: -I${SRCDIR}/include
#cgo LDFLAGS: -ldl
#include <cuda.h>
#include <string.h>

extern const char *kgen_driver_open(const char *name);

// load is cuModuleLoadDataEx with a log of errors.
static CUresult load(CUmodule *module, const void *image, char *log, size_t bytes) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)bytes};
	return cuModuleLoadDataEx(module, image, 2, options, values);
}

// launch starts a kernel whose parameters lie at offsets of a block of
// bytes. dims are the grid's, the block's and the cluster's extents, the
// last zeros for none. An early one may start while the kernel before runs.
static CUresult launch(CUfunction f, const unsigned *dims, int early, unsigned shared, char *params, const size_t *offsets, int n) {
	void *at[n > 0 ? n : 1];
	for (int i = 0; i < n; i++) at[i] = params + offsets[i];
	CUlaunchAttribute attrs[2];
	unsigned numAttrs = 0;
	memset(attrs, 0, sizeof attrs);
	if (dims[6] != 0) {
		CUlaunchAttribute *a = &attrs[numAttrs++];
		a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
		a->value.clusterDim.x = dims[6];
		a->value.clusterDim.y = dims[7];
		a->value.clusterDim.z = dims[8];
	}
	if (early) {
		CUlaunchAttribute *a = &attrs[numAttrs++];
		a->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
		a->value.programmaticStreamSerializationAllowed = 1;
	}
	if (numAttrs == 0) // drivers before 11.8 have no other call
		return cuLaunchKernel(f, dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], shared, NULL, at, NULL);
	CUlaunchConfig config = {
		.gridDimX = dims[0], .gridDimY = dims[1], .gridDimZ = dims[2],
		.blockDimX = dims[3], .blockDimY = dims[4], .blockDimZ = dims[5],
		.sharedMemBytes = shared, .attrs = attrs, .numAttrs = numAttrs,
	};
	return cuLaunchKernelEx(&config, f, at, NULL);
}
*/
import "C"

import (
	"bytes"
	"fmt"
	"time"
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/kgen-dev/kgen/bench"
)

// libraryName is the driver's.
const libraryName = "libcuda.so.1"

// openLibrary opens the driver's library, once.
func openLibrary(name string) error {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	if text := C.kgen_driver_open(c); text != nil {
		return fmt.Errorf("%w: %s", ErrNoDriver, C.GoString(text))
	}
	return nil
}

// failed makes an error of a call's result.
func failed(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return newError(call, int(r))
}

func newError(call string, code int) *Error {
	e := &Error{Call: call, Code: code, Text: fmt.Sprintf("error %d", code)}
	var text *C.char
	if C.cuGetErrorString(C.CUresult(code), &text) == C.CUDA_SUCCESS && text != nil {
		e.Text = fmt.Sprintf("%s (%d)", C.GoString(text), code)
	}
	return e
}

// caught turns a panic of the binding into an error; others go on.
func caught(call string, err *error) {
	switch cause := recover().(type) {
	case nil:
	case cu.Result:
		*err = newError(call, int(cause))
	default:
		panic(cause)
	}
}

// handle is a handle of the binding as C has it.
func handle[H any](h uintptr) H { return *(*H)(unsafe.Pointer(&h)) }

// loadModule compiles and loads PTX. The error holds the compiler's log.
func loadModule(text []byte) (cu.Module, error) {
	image := append(bytes.Clone(text), 0)
	log := make([]byte, 8192)
	var m C.CUmodule
	r := C.load(&m, unsafe.Pointer(&image[0]), (*C.char)(unsafe.Pointer(&log[0])), C.size_t(len(log)))
	err := failed("cuModuleLoadDataEx", r)
	said, _, _ := bytes.Cut(log, []byte{0})
	if said = bytes.TrimSpace(said); err != nil && len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return cu.Module(uintptr(unsafe.Pointer(m))), err
}

func unloadModule(m cu.Module) error {
	return failed("cuModuleUnload", C.cuModuleUnload(handle[C.CUmodule](uintptr(m))))
}

// allowShared lets a function have bytes of dynamic shared memory.
func allowShared(f cu.Function, bytes int64) error {
	return failed("cuFuncSetAttribute", C.cuFuncSetAttribute(handle[C.CUfunction](uintptr(f)), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// launchKernel starts a function.
func launchKernel(f cu.Function, l *bench.Launch) error {
	var dims [9]C.uint
	for i := range 3 {
		dims[i], dims[3+i], dims[6+i] = C.uint(max(l.Grid[i], 1)), C.uint(max(l.Block[i], 1)), C.uint(l.Cluster[i])
	}
	if l.Cluster != ([3]uint32{}) {
		for i := 6; i < 9; i++ {
			dims[i] = max(dims[i], 1)
		}
	}
	var params []byte
	offsets := make([]C.size_t, len(l.Args)+1)
	for i, a := range l.Args {
		params = append(params, make([]byte, -len(params)&15)...)
		offsets[i] = C.size_t(len(params))
		params = append(params, a...)
	}
	params = append(params, 0)
	var early C.int
	if l.Early {
		early = 1
	}
	r := C.launch(handle[C.CUfunction](uintptr(f)), &dims[0], early, C.uint(l.SharedBytes), (*C.char)(unsafe.Pointer(&params[0])), &offsets[0], C.int(len(l.Args)))
	return failed("cuLaunchKernel", r)
}

// event is a moment in the GPU's order of work.
type event struct{ e C.CUevent }

func newEvent() (*event, error) {
	e := &event{}
	return e, failed("cuEventCreate", C.cuEventCreate(&e.e, C.CU_EVENT_DEFAULT))
}

func (e *event) free() { C.cuEventDestroy(e.e) }

func (e *event) record() error { return failed("cuEventRecord", C.cuEventRecord(e.e, nil)) }

// over tells whether the moment has come.
func (e *event) over() (bool, error) {
	r := C.cuEventQuery(e.e)
	if r == C.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	return true, failed("cuEventQuery", r)
}

// since is the time from another event to this one, both over.
func (e *event) since(start *event) (time.Duration, error) {
	var ms C.float
	r := C.cuEventElapsedTime(&ms, start.e, e.e)
	return time.Duration(float64(ms) * float64(time.Millisecond)), failed("cuEventElapsedTime", r)
}
