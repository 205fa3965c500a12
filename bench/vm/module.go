package vm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	mathbits "math/bits"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
)

// module is a loaded PTX module.
type module struct {
	dev     *Device
	src     *ptx.Module
	gpu     *target.GPU
	info    bench.Module
	files   map[int32]string
	globals map[*ptx.Variable]*allocation
	byName  map[string]*ptx.Variable
	entries map[string]*ptx.Function
	kernels map[string]*kernel       // those launched so far
	funcs   map[string]*ptx.Function // defined ones
	numbers map[*ptx.Function]int    // of defined functions: their addresses
	decoded int                      // instructions, with those of functions once for each kernel
}

// maxDecoded bounds the instructions that are decoded for a module's launches:
// measured, each takes up to 2 KB meanwhile.
const maxDecoded = 1 << 19

// kernel is an entry point with all it calls, decoded.
type kernel struct {
	mod     *module
	prog    *program
	funcs   map[*ptx.Function]*program
	table   map[int]*program        // by function number, for indirect calls
	shared  map[*ptx.Variable]int64 // offsets of shared variables
	system  int64                   // bytes of shared memory that are the system's; the kernel asked where they are
	static  int64                   // bytes of shared memory, with those
	dynamic int64                   // where dynamic shared memory begins
	cancels bool                    // it takes over the work of blocks that have not begun
	fetches bool                    // bulk copies read global memory
	parts   bool                    // parts of warps wait for each other (bar.warp.sync), so readers are kept by lane
	told    bool                    // mbarriers are told of cp.async
	invals  bool                    // mbarriers become plain memory again
	memOps  int                     // instructions that touch memory, numbered from 0
	memAt   []site                  // where those are
	maximum [3]uint32

	// log2 of the smallest access to each memory, at most of 4 bytes: how fine
	// the race detector looks.
	sharedGrain, globalGrain uint
	required                 [3]uint32

	cluster           [3]uint32 // .reqnctapercluster, zero where not given
	maxClusterRank    uint64    // 0 where not given
	explicitCluster   bool
	blocksAreClusters bool // a launch's grid counts clusters
}

// loadModule places a module's variables and lists its kernels.
func loadModule(d *Device, tree *ptx.Module, gpu *target.GPU) (*module, error) {
	m := &module{
		dev: d, src: tree, gpu: gpu,
		files: map[int32]string{}, globals: map[*ptx.Variable]*allocation{}, byName: map[string]*ptx.Variable{},
		entries: map[string]*ptx.Function{}, kernels: map[string]*kernel{}, funcs: map[string]*ptx.Function{},
		numbers: map[*ptx.Function]int{},
	}
	if err := m.load(); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

func (m *module) load() error {
	tree := m.src
	if tree.AddressSize != 64 {
		return m.errorf(ptx.Pos{}, "address size %d: the virtual machine has 64-bit addresses", tree.AddressSize)
	}
	m.info = *bench.DescribeModule(tree)
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ptx.SourceFile:
			m.files[decl.Index] = decl.Name
		case *ptx.Function:
			if decl.Body != nil {
				m.numbers[decl] = len(m.funcs)
				m.funcs[decl.Name] = decl
			}
		case *ptx.Variable:
			if err := m.place(decl); err != nil {
				return err
			}
		}
	}
	for _, decl := range tree.Decls {
		if v, ok := decl.(*ptx.Variable); ok && v.Init != nil {
			if err := m.initialise(v); err != nil {
				return err
			}
		}
	}
	for _, decl := range tree.Decls {
		f, ok := decl.(*ptx.Function)
		if !ok || !f.Kernel || f.Body == nil {
			continue
		}
		m.entries[f.Name] = f
	}
	return nil
}

func (m *module) errorf(pos ptx.Pos, format string, args ...any) error {
	return &ptx.Error{File: m.src.File, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

func (m *module) free() {
	for _, a := range m.globals {
		m.dev.mem.free(a)
	}
	m.globals = nil
}

// place reserves memory for a variable of the module.
func (m *module) place(v *ptx.Variable) error {
	if old := m.byName[v.Name]; old != nil && (old.Linkage != ptx.Extern || v.Linkage == ptx.Extern) {
		return nil // a second declaration
	}
	if v.Space != ptx.SpaceGlobal && v.Space != ptx.SpaceConst || v.Linkage == ptx.Extern {
		return nil // a kernel's, or the business of a kernel that names it
	}
	a, err := m.dev.mem.alloc(v.Size(), v.Alignment())
	if err != nil {
		return m.errorf(v.Pos, "variable %s: %v", v.Name, err)
	}
	a.name, a.module, a.constant = v.Name, true, v.Space == ptx.SpaceConst
	m.globals[v] = a
	m.byName[v.Name] = v
	return nil
}

// initialise writes a variable's initial value.
func (m *module) initialise(v *ptx.Variable) error {
	a := m.globals[v]
	if a == nil || v.Type >= ptx.TexRef {
		return nil // nothing reads it
	}
	size := int64(v.Type.Size())
	inner := v.Dims
	if v.Vector > 0 {
		inner = append(append([]int64{}, inner...), int64(v.Vector))
	}
	return m.fill(v, a.data, v.Init, inner, size)
}

// fill writes a list of an initialiser, of arrays of the given extents.
func (m *module) fill(v *ptx.Variable, data []byte, in *ptx.Init, dims []int64, size int64) error {
	if !in.IsList {
		return m.element(v, data, in, size)
	}
	if len(dims) == 0 {
		return m.errorf(v.Pos, "initialiser of %s: more braces than dimensions", v.Name)
	}
	step := size
	for _, d := range dims[1:] {
		step *= d
	}
	offset := int64(0)
	for i := range in.List {
		e := &in.List[i]
		n := step
		if !e.IsList && len(dims) > 1 {
			n = size // braces left out
		}
		if offset+n > int64(len(data)) {
			return m.errorf(v.Pos, "initialiser of %s: more values than elements", v.Name)
		}
		rest := dims[1:]
		if err := m.fill(v, data[offset:], e, rest, size); err != nil {
			return err
		}
		offset += n
	}
	return nil
}

func (m *module) element(v *ptx.Variable, data []byte, in *ptx.Init, size int64) error {
	bits := in.Value.Value
	switch in.Value.Kind {
	case ptx.OpImm:
		switch {
		case in.Value.Imm == ptx.ImmF64 && v.Type == ptx.F32:
			bits = uint64(math.Float32bits(float32(math.Float64frombits(bits))))
		case in.Value.Imm == ptx.ImmF32 && v.Type == ptx.F64:
			bits = math.Float64bits(float64(math.Float32frombits(uint32(bits))))
		}
	case ptx.OpSymbol:
		sym, _ := in.Value.Decl().(*ptx.Variable)
		a := m.allocation(sym)
		if a == nil {
			return m.errorf(v.Pos, "initialiser of %s: the address of %s is not known", v.Name, in.Value.Name())
		}
		bits += a.addr
	case ptx.OpFunc:
		f := m.definition(in.Value.Decl().(*ptx.Function))
		n, ok := m.numbers[f]
		if !ok {
			return m.errorf(v.Pos, "initialiser of %s: function %s is not defined", v.Name, f.Name)
		}
		bits += functionAddress(n)
	default:
		return m.errorf(v.Pos, "initialiser of %s: want constants or addresses of variables and functions", v.Name)
	}
	if in.Mask != 0 { // a byte or more of an address
		bits = bits & in.Mask >> mathbits.TrailingZeros64(in.Mask)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	if int64(len(data)) < size {
		return m.errorf(v.Pos, "initialiser of %s: more values than elements", v.Name)
	}
	copy(data[:size], b[:])
	return nil
}

// allocation is where a variable of the module lies, also when it is named by
// an earlier declaration.
func (m *module) allocation(v *ptx.Variable) *allocation {
	if v == nil {
		return nil
	}
	if a := m.globals[v]; a != nil {
		return a
	}
	if d := m.byName[v.Name]; d != nil {
		return m.globals[d]
	}
	return nil
}

// sharedBase is the address of a block's first byte of shared memory: newer
// hardware keeps the first KiB to itself.
func (m *module) sharedBase() int64 {
	return int64(m.gpu.Limits().SharedReserved) * boolInt(m.gpu.CC.AtLeast(9, 0))
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// kernel is an entry point with every function it may call, decoded.
func (m *module) kernel(ctx context.Context, name string) (*kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	k, err := m.decode(ctx, m.entries[name])
	if err != nil {
		return nil, err
	}
	m.kernels[name] = k
	return k, nil
}

func (m *module) decode(ctx context.Context, f *ptx.Function) (*kernel, error) {
	k := &kernel{mod: m, sharedGrain: 2, globalGrain: 2, funcs: map[*ptx.Function]*program{}, table: map[int]*program{}, shared: map[*ptx.Variable]int64{}}
	reach := m.reachable(f)
	n := m.decoded
	for _, g := range reach {
		n += len(g.Code)
	}
	if n > maxDecoded {
		return nil, m.errorf(f.Pos, "kernel %s: %d instructions with the functions it reaches and the kernels before it: the virtual machine takes %d", f.Name, n, maxDecoded)
	}
	m.decoded = n
	if err := k.layoutShared(reach); err != nil {
		return nil, err
	}
	for _, g := range reach {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := decode(k, g)
		if err != nil {
			return nil, err
		}
		k.funcs[g] = p
		k.table[m.numbers[g]] = p
	}
	k.prog = k.funcs[f]
	info := bench.DescribeKernel(f)
	k.maximum, k.required, k.cluster, k.blocksAreClusters = info.MaxThreads, info.ReqThreads, info.ReqCluster, info.BlocksAreClusters
	for _, d := range f.Directives {
		switch d.Name {
		case "maxclusterrank":
			k.maxClusterRank = uint64(d.Values[0])
		case "explicitcluster":
			k.explicitCluster = true
		}
	}
	return k, nil
}

// systemShared is how many bytes of the shared memory that the system keeps to itself
// kernels may use: cooperative groups count on so many for tiles of several warps
// (cooperative_groups/details/memory.h of CUDA 13.0).
const systemShared = 288

// layoutShared places the shared variables that the functions use, behind the system's
// memory where one asks for that.
func (k *kernel) layoutShared(reach []*ptx.Function) error {
	var static, dynamic []*ptx.Variable
	align := int64(16)
	add := func(v *ptx.Variable) {
		if _, ok := k.shared[v]; ok {
			return
		}
		if v.Linkage == ptx.Extern || v.Size() == 0 {
			dynamic = append(dynamic, v)
			align = max(align, v.Alignment())
			k.shared[v] = 0
			return
		}
		static = append(static, v)
		k.shared[v] = 0
	}
	var visit func(o *ptx.Operand)
	visit = func(o *ptx.Operand) {
		if v, ok := o.Decl().(*ptx.Variable); ok && o.Kind != ptx.OpReg && v.Space == ptx.SpaceShared {
			add(v)
		}
		if s := ptx.Special(o.Slot()); o.Kind == ptx.OpSpecial && (s == ptx.ReservedSmemOffset0 || s == ptx.ReservedSmemOffset1) {
			k.system = systemShared
		}
		for i := range o.Elems() {
			visit(&o.Elems()[i])
		}
	}
	for _, f := range reach {
		for _, v := range f.Variables {
			if v.Space == ptx.SpaceShared {
				add(v)
			}
		}
		for _, in := range f.Code {
			for i := range in.Operands {
				visit(&in.Operands[i])
			}
		}
	}
	k.static = k.system
	for _, v := range static {
		a := v.Alignment()
		k.static = (k.static + a - 1) &^ (a - 1)
		k.shared[v] = k.static
		k.static += v.Size()
	}
	if most := int64(k.mod.gpu.Limits().SharedPerBlock); k.static-k.system > most {
		return k.mod.errorf(reach[0].Pos, "kernel %s: %d bytes of shared memory: %s has %d for a block", reach[0].Name, k.static, k.mod.gpu.Name, most)
	}
	k.dynamic = k.static
	if len(dynamic) > 0 {
		k.dynamic = (k.static + align - 1) &^ (align - 1)
	}
	for _, v := range dynamic {
		k.shared[v] = k.dynamic
	}
	return nil
}
