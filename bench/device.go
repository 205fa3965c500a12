// Package bench runs kernels on a device and checks what they computed: the
// Device a kernel runs on, the case file that says what to run and what must
// come out, and the result of a run.
package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Device runs PTX: the virtual machine (bench/vm) or a GPU. Its methods are
// for one goroutine at a time.
type Device interface {
	// Name says what runs, for people: "virtual machine, sm_90a".
	Name() string

	// Provenance is where the device's reports are from: Counted for counters,
	// Measured for times. A device has one of the two.
	Provenance() Provenance

	// Load reads a PTX module. The file's name is for messages only.
	Load(ctx context.Context, file string, ptx []byte) (*Module, error)

	// Unload frees a module.
	Unload(*Module) error

	// Alloc reserves size bytes of global memory, aligned to align bytes (a
	// power of two; 0 is 256). Its bytes were never written.
	Alloc(size, align int64) (Buffer, error)

	// Free gives a buffer back; an access to it then is out of bounds.
	Free(Buffer) error

	// Write copies data from the host into a buffer at a byte offset.
	Write(b Buffer, offset int64, data []byte) error

	// Read copies len(data) bytes from a buffer to the host.
	Read(b Buffer, offset int64, data []byte) error

	// Launch runs a kernel to its end. A fault of the kernel is in the report
	// and no error. A *KernelError says that the kernel ended the launch itself;
	// the report beside it holds what came before. Any other error means that
	// the launch could not be made, or that ctx ended.
	Launch(ctx context.Context, m *Module, kernel string, l Launch) (*Report, error)

	// TensorMap is the argument that passes a tensor map, as the device reads it.
	TensorMap(t *TensorMap) (Arg, error)

	// Close frees everything.
	Close() error
}

// Overlapper is a Device on which an early launch may start while the one before runs.
type Overlapper interface {
	Device

	// LaunchAll is Launch for several kernels of a module, which are queued one behind the
	// other: early ones start as early as they may. One report is of all, its time from the
	// start of the first to the end of the last.
	LaunchAll(ctx context.Context, m *Module, kernels []string, launches []Launch) (*Report, error)
}

// Buffer is an allocation in a device's global memory.
type Buffer struct {
	Address uint64
	Size    int64
}

// Module is a module that a device loaded.
type Module struct {
	ID      int // the device's own
	Target  string
	Kernels []Kernel // in the order of the text
}

// Kernel finds a kernel by name; the error lists what the module has.
func (m *Module) Kernel(name string) (*Kernel, error) {
	for i := range m.Kernels {
		if m.Kernels[i].Name == name {
			return &m.Kernels[i], nil
		}
	}
	return nil, fmt.Errorf("kernel %q: the module has %s", name, m.kernelNames())
}

func (m *Module) kernelNames() string {
	if len(m.Kernels) == 0 {
		return "no kernels"
	}
	var s string
	for i, k := range m.Kernels {
		if i == 20 {
			return s + fmt.Sprintf(" and %d more", len(m.Kernels)-i)
		}
		if i > 0 {
			s += ", "
		}
		s += k.Name
	}
	return s
}

// Kernel is a kernel's interface.
type Kernel struct {
	Name       string
	Params     []Param
	MaxThreads [3]uint32 // .maxntid, zero where not given
	ReqThreads [3]uint32 // .reqntid, zero where not given
	ReqCluster [3]uint32 // .reqnctapercluster, zero where not given

	BlocksAreClusters bool // .blocksareclusters: a launch's grid counts clusters
}

// DescribeModule lists the kernels of PTX.
func DescribeModule(tree *ptx.Module) *Module {
	m := &Module{}
	if len(tree.Targets) > 0 {
		m.Target = tree.Targets[0]
	}
	for _, decl := range tree.Decls {
		if f, ok := decl.(*ptx.Function); ok && f.Kernel && f.Body != nil {
			m.Kernels = append(m.Kernels, DescribeKernel(f))
		}
	}
	return m
}

// DescribeKernel is a kernel's interface.
func DescribeKernel(f *ptx.Function) Kernel {
	k := Kernel{Name: f.Name}
	at := int64(0)
	for _, v := range f.Params {
		a := v.Alignment()
		at = (at + a - 1) &^ (a - 1)
		k.Params = append(k.Params, Param{Name: v.Name, Type: v.Type.String(), Offset: at, Size: v.Size(), Align: a})
		at += v.Size()
	}
	for _, d := range f.Directives {
		v := [3]uint32{1, 1, 1}
		for i, n := range d.Values {
			v[i] = uint32(n)
		}
		switch d.Name {
		case "maxntid":
			k.MaxThreads = v
		case "reqntid":
			k.ReqThreads = v
		case "reqnctapercluster":
			k.ReqCluster = v
		case "blocksareclusters":
			k.BlocksAreClusters = true
		}
	}
	return k
}

// Param is a kernel's parameter: where it lies among the parameters' bytes.
type Param struct {
	Name         string
	Type         string // PTX's element type, "u64"
	Offset, Size int64  // bytes
	Align        int64
}

// Launch says how to start a kernel. A zero extent counts as 1. Where the kernel's
// blocks are clusters the grid counts those, and the block may be left at 1.
type Launch struct {
	Grid, Block, Cluster [3]uint32
	SharedBytes          int64 // dynamic shared memory
	Args                 []Arg // one for each parameter

	// Early says that the kernel may start while the launch before runs, for which it waits
	// itself (griddepcontrol.wait): see Overlapper. The virtual machine, where launches run
	// one after the other, checks what the kernel does before it waits.
	Early bool

	// Blocks limits the run to these blocks of the grid; nil runs all.
	Blocks [][3]uint32

	Lines bool // count by line too
}

// Arg is an argument's bytes, little-endian, as long as its parameter.
type Arg []byte

// Pointer is the argument that passes a buffer's address.
func Pointer(b Buffer) Arg { return U64(b.Address) }

// U64 is a 64-bit argument.
func U64(v uint64) Arg { return binary.LittleEndian.AppendUint64(nil, v) }

// U32 is a 32-bit argument.
func U32(v uint32) Arg { return binary.LittleEndian.AppendUint32(nil, v) }

// I32 is a 32-bit argument.
func I32(v int32) Arg { return U32(uint32(v)) }

// I64 is a 64-bit argument.
func I64(v int64) Arg { return U64(uint64(v)) }

// F32 is a 32-bit floating-point argument.
func F32(v float32) Arg { return U32(math.Float32bits(v)) }

// F64 is a 64-bit floating-point argument.
func F64(v float64) Arg { return U64(math.Float64bits(v)) }

// Report is what a launch did.
type Report struct {
	Faults   []Fault
	Counters Counters      // of a device that counts
	Lines    []LineCount   // in the order of the PTX, where asked for
	Time     time.Duration // from the launch's start to its end, of a device that measures
	Printed  string        // what the kernel printed
}
