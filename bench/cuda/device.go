//go:build cuda && cgo && linux

package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Find says what GPUs there are.
func Find() (info *Info, err error) {
	defer caught("cuInit", &err)
	if err := openLibrary(libraryName); err != nil {
		return nil, err
	}
	cu.Init(0)
	info = &Info{Driver: cu.Version()}
	for i := range cu.DeviceGetCount() {
		d := cu.DeviceGet(i)
		g := GPU{Name: d.Name(), SMs: d.Attribute(cu.MULTIPROCESSOR_COUNT)}
		g.Major, g.Minor = d.ComputeCapability()
		info.Devices = append(info.Devices, g)
	}
	return info, nil
}

// device is a GPU with a context of its own. All calls of the driver are made on one
// thread.
type device struct {
	thread  *thread
	name    string
	context cu.Context
	optin   int64 // bytes of shared memory that a block may have
	modules map[int]*module
	next    int
	lost    error // why the context is of no use any more
}

// module is one that is loaded.
type module struct {
	file      string
	handle    cu.Module
	functions map[string]cu.Function
}

// sharedOptin is CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, which the
// binding has no name for.
const sharedOptin cu.DeviceAttribute = 97

// Open opens a GPU by its number. Buffers that were never written hold bytes of all
// ones, which are NaN in every floating-point type.
func Open(n int) (bench.Device, error) {
	info, err := Find()
	if err != nil {
		return nil, err
	}
	if n < 0 || n >= len(info.Devices) {
		return nil, fmt.Errorf("GPU %d: the driver has %d, counted from 0", n, len(info.Devices))
	}
	d := &device{thread: newThread(), name: info.Devices[n].Name, modules: map[int]*module{}}
	if err := d.do("cuCtxCreate", func() error {
		gpu := cu.DeviceGet(n)
		d.optin = int64(gpu.Attribute(sharedOptin))
		d.context = cu.CtxCreate(cu.CTX_SCHED_AUTO, gpu)
		return nil
	}); err != nil {
		d.thread.end()
		return nil, err
	}
	return d, nil
}

// do makes calls of the driver; the panics of the binding are errors of call.
func (d *device) do(call string, f func() error) error {
	return d.thread.do(func() (err error) {
		defer caught(call, &err)
		if d.lost != nil {
			return d.lost
		}
		return f()
	})
}

func (d *device) Name() string { return d.name }

// Provenance is bench.Measured.
func (d *device) Provenance() bench.Provenance { return bench.Measured }

func (d *device) Load(ctx context.Context, file string, text []byte) (*bench.Module, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tree, err := ptx.Load(file, text)
	if err != nil {
		return nil, err
	}
	m := &module{file: file, functions: map[string]cu.Function{}}
	info := bench.DescribeModule(tree)
	if err := d.do("cuModuleGetFunction", func() error {
		var err error
		if m.handle, err = loadModule(text); err != nil {
			return err
		}
		for _, k := range info.Kernels {
			m.functions[k.Name] = m.handle.GetFunction(k.Name)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("%s: %s refuses it: %w", file, d.name, err)
	}
	d.next++
	info.ID = d.next
	d.modules[info.ID] = m
	return info, nil
}

func (d *device) Unload(m *bench.Module) error {
	mod, ok := d.modules[m.ID]
	if !ok {
		return fmt.Errorf("module %d: not loaded", m.ID)
	}
	delete(d.modules, m.ID)
	return d.do("cuModuleUnload", func() error { return unloadModule(mod.handle) })
}

// driverAlign is what the driver aligns every allocation to.
const driverAlign = 256

func (d *device) Alloc(size, align int64) (b bench.Buffer, err error) {
	if size < 0 || align > driverAlign {
		return b, fmt.Errorf("buffer of %d bytes aligned to %d: want 0 bytes or more, and at most %d", size, align, driverAlign)
	}
	err = d.do("cuMemAlloc", func() error {
		p := cu.MemAlloc(max(size, 1))
		b = bench.Buffer{Address: uint64(p), Size: size}
		cu.MemsetD8(p, 0xff, max(size, 1))
		return nil
	})
	return b, err
}

func (d *device) Free(b bench.Buffer) error {
	return d.do("cuMemFree", func() error {
		cu.MemFree(cu.DevicePtr(b.Address))
		return nil
	})
}

func (d *device) Write(b bench.Buffer, offset int64, data []byte) error {
	return d.copy("cuMemcpyHtoD", b, offset, data, func(at cu.DevicePtr, p unsafe.Pointer, n int64) { cu.MemcpyHtoD(at, p, n) })
}

func (d *device) Read(b bench.Buffer, offset int64, data []byte) error {
	return d.copy("cuMemcpyDtoH", b, offset, data, func(at cu.DevicePtr, p unsafe.Pointer, n int64) { cu.MemcpyDtoH(p, at, n) })
}

func (d *device) copy(call string, b bench.Buffer, offset int64, data []byte, f func(cu.DevicePtr, unsafe.Pointer, int64)) error {
	n := int64(len(data))
	if offset < 0 || offset+n > b.Size {
		return fmt.Errorf("copy of %d bytes at %d: the buffer has %d", n, offset, b.Size)
	}
	if n == 0 {
		return nil
	}
	return d.do(call, func() error {
		f(cu.DevicePtr(b.Address+uint64(offset)), unsafe.Pointer(&data[0]), n)
		return nil
	})
}

func (d *device) TensorMap(t *bench.TensorMap) (a bench.Arg, err error) {
	err = d.do("cuTensorMapEncodeTiled", func() error {
		a, err = encodeTensorMap(t)
		return err
	})
	return a, err
}

// Launch runs a whole grid and times it.
func (d *device) Launch(ctx context.Context, m *bench.Module, name string, l bench.Launch) (*bench.Report, error) {
	return d.LaunchAll(ctx, m, []string{name}, []bench.Launch{l})
}

// LaunchAll runs whole grids, one queued behind the other, and times them together.
func (d *device) LaunchAll(ctx context.Context, m *bench.Module, kernels []string, launches []bench.Launch) (*bench.Report, error) {
	mod, ok := d.modules[m.ID]
	if !ok {
		return nil, fmt.Errorf("module %d: not loaded", m.ID)
	}
	for i, name := range kernels {
		k, err := m.Kernel(name)
		if err != nil {
			return nil, err
		}
		if err := d.fits(k, &launches[i]); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", name, err)
		}
	}
	r := &bench.Report{}
	err := d.do("cuEventRecord", func() error {
		var err error
		r.Time, err = d.timed(ctx, mod, kernels, launches)
		return err
	})
	name := strings.Join(kernels, ", ")
	var wrong *Error
	switch {
	case errors.As(err, &wrong) && died[wrong.Code]:
		d.lost = fmt.Errorf("kernel %s ended the context: %w", name, err)
		return r, &bench.KernelError{File: mod.file, Kernel: name, Message: wrong.Text}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		d.lost = fmt.Errorf("kernel %s still runs", name)
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return r, nil
}

// fits refuses a launch that the kernel or the GPU does not take.
func (d *device) fits(k *bench.Kernel, l *bench.Launch) error {
	switch {
	case l.Blocks != nil:
		return errors.New("some blocks of a grid: a GPU runs all")
	case len(l.Args) != len(k.Params):
		return fmt.Errorf("%d arguments: the kernel has %d parameters", len(l.Args), len(k.Params))
	case l.SharedBytes < 0 || l.SharedBytes > d.optin:
		return fmt.Errorf("%d bytes of shared memory: %s has %d for a block", l.SharedBytes, d.name, d.optin)
	}
	for i, a := range l.Args {
		if p := k.Params[i]; int64(len(a)) != p.Size {
			return fmt.Errorf("argument %d: %d bytes: parameter %s has %d", i, len(a), p.Name, p.Size)
		}
	}
	return nil
}

// died are the results after which a context is of no use: the kernel did wrong.
var died = map[int]bool{
	700: true, // CUDA_ERROR_ILLEGAL_ADDRESS
	702: true, // CUDA_ERROR_LAUNCH_TIMEOUT
	710: true, // CUDA_ERROR_ASSERT
	714: true, // CUDA_ERROR_HARDWARE_STACK_ERROR
	715: true, // CUDA_ERROR_ILLEGAL_INSTRUCTION
	716: true, // CUDA_ERROR_MISALIGNED_ADDRESS
	717: true, // CUDA_ERROR_INVALID_ADDRESS_SPACE
	718: true, // CUDA_ERROR_INVALID_PC
	719: true, // CUDA_ERROR_LAUNCH_FAILED
}

// staticShared is what a block may have of shared memory without asking.
const staticShared = 48 << 10

// allow lets a function have the shared memory of a launch.
func allow(f cu.Function, l *bench.Launch) error {
	if l.SharedBytes <= staticShared-int64(cu.FuncGetAttribute(cu.FUNC_A_SHARED_SIZE_BYTES, f)) {
		return nil
	}
	return allowShared(f, l.SharedBytes)
}

// timed launches functions and waits for the end of the last, or that of ctx.
func (d *device) timed(ctx context.Context, m *module, kernels []string, launches []bench.Launch) (time.Duration, error) {
	var calls []func() error
	for i := range launches {
		f, l := m.functions[kernels[i]], &launches[i]
		if err := allow(f, l); err != nil {
			return 0, err
		}
		calls = append(calls, func() error { return launchKernel(f, l) })
	}
	start, err := newEvent()
	if err != nil {
		return 0, err
	}
	defer start.free()
	end, err := newEvent()
	if err != nil {
		return 0, err
	}
	defer end.free()
	for _, f := range append(append([]func() error{start.record}, calls...), end.record) {
		if err := f(); err != nil {
			return 0, err
		}
	}
	for {
		over, err := end.over()
		if err != nil {
			return 0, err
		}
		if over {
			return end.since(start)
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(50 * time.Microsecond):
		}
	}
}

// Close frees everything: the context has all of it.
func (d *device) Close() error {
	err := d.thread.do(func() (err error) {
		defer caught("cuCtxDestroy", &err)
		if d.lost == nil {
			d.context.Destroy()
		}
		return nil
	})
	d.thread.end()
	return err
}
