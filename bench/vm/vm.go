// Package vm is a virtual machine for PTX: a bench.Device that runs kernels of
// any compiler on the processor, counts what they do, and reports what they
// do wrong.
//
// A module's functions are decoded once into dense programs whose registers
// are 32 lanes wide (decode*.go, slots.go). Warps run them under a mask of
// active lanes; lanes that part at a branch meet again at its immediate
// post-dominator (warp.go). Blocks spread over the processor's cores, and what
// all of them share they touch one after the other, in an order that does not
// depend on how many cores there are (launch.go).
package vm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/target"
)

// Options says how a virtual machine works. The zero value is good.
type Options struct {
	GPU      *target.GPU // what it is like; nil: one that fits a module's .target
	Seed     uint64      // of all that is left to chance
	Schedule Schedule
	Async    Async
	Approx   Approx // of approximate instructions
	Tensor   Tensor // sums of tensor cores
	Checks   Checks
	Workers  int // blocks run at a time; 0: one for each core that the process has by then

	MaxSteps  int64 // warp instructions of one launch, before it counts as a runaway; 0: DefaultSteps
	MaxMemory int64 // bytes of global memory; 0: a quarter of this machine's, at most 16 GiB
	MaxFaults int   // kinds of faults kept in a report; 0: 100
}

// Schedule is the order in which warps, lanes and blocks run.
type Schedule string

// Schedules.
const (
	InOrder Schedule = ""       // by index
	Shuffle Schedule = "random" // by the seed
)

// Async is when asynchronous copies and tensor operations land.
type Async string

// Moments.
const (
	Late   Async = ""       // at the last moment the program allows
	Early  Async = "early"  // at once
	Random Async = "random" // by the seed
)

// ParseSchedule reads "order" or "random".
func ParseSchedule(s string) (Schedule, error) {
	switch s {
	case "", "order":
		return InOrder, nil
	case "random":
		return Shuffle, nil
	}
	return "", fmt.Errorf("schedule %q: want order or random", s)
}

// ParseAsync reads "late", "early" or "random".
func ParseAsync(s string) (Async, error) {
	switch s {
	case "", "late":
		return Late, nil
	case "early":
		return Early, nil
	case "random":
		return Random, nil
	}
	return "", fmt.Errorf("asynchronous work %q: want late, early or random", s)
}

// Device is a virtual machine.
type Device struct {
	opt      Options
	mem      memory
	l2       l2Cache
	made     madeMaps
	modules  map[int]*module
	fitting  *target.GPU // without a GPU of the options: that of the last module
	nextID   int
	classBit map[bench.FaultClass]checkBits
}

// New makes a virtual machine with no memory in use.
func New(opt Options) (*Device, error) {
	if opt.MaxSteps <= 0 {
		opt.MaxSteps = DefaultSteps
	}
	if opt.MaxMemory <= 0 {
		opt.MaxMemory = mostMemory()
	}
	if opt.MaxFaults <= 0 {
		opt.MaxFaults = 100
	}
	if _, err := ParseAsync(string(opt.Async)); err != nil {
		return nil, err
	}
	if _, err := ParseSchedule(string(opt.Schedule)); err != nil {
		return nil, err
	}
	d := &Device{opt: opt, modules: map[int]*module{}, classBit: map[bench.FaultClass]checkBits{}}
	for _, c := range bench.FaultClasses() {
		d.classBit[c] = mustBit(string(c))
	}
	d.mem.most = opt.MaxMemory
	d.mem.init()
	return d, nil
}

var _ bench.Tracker = (*Device)(nil)

// BareName is the name of a machine that is no certain GPU.
const BareName = "virtual machine"

// Name says what runs: the GPU's name stands behind BareName and a comma, or behind
// "as on" where none was asked for and that of the last module loaded is the oldest that
// fits.
func (d *Device) Name() string {
	switch {
	case d.opt.GPU != nil:
		return BareName + ", " + d.opt.GPU.Name
	case d.fitting != nil:
		return BareName + " as on " + d.fitting.Name
	}
	return BareName
}

// Provenance is bench.Counted.
func (d *Device) Provenance() bench.Provenance { return bench.Counted }

// Memory is how many bytes of global memory it has, for all buffers together.
func (d *Device) Memory() int64 { return d.mem.most }

// Alloc reserves global memory.
func (d *Device) Alloc(size, align int64) (bench.Buffer, error) {
	if size < 0 {
		return bench.Buffer{}, fmt.Errorf("buffer of %d bytes: want 0 or more", size)
	}
	if align < 0 || align&(align-1) != 0 {
		return bench.Buffer{}, fmt.Errorf("alignment %d: want a power of two", align)
	}
	a, err := d.mem.alloc(size, max(align, 1))
	if err != nil {
		return bench.Buffer{}, err
	}
	a.forget()
	return bench.Buffer{Address: a.addr, Size: size}, nil
}

// Free gives a buffer back.
func (d *Device) Free(b bench.Buffer) error {
	a, err := d.buffer(b)
	if err != nil {
		return err
	}
	d.mem.free(a)
	return nil
}

// Write copies data into a buffer.
func (d *Device) Write(b bench.Buffer, offset int64, data []byte) error {
	a, err := d.buffer(b)
	if err != nil {
		return err
	}
	if offset < 0 || offset+int64(len(data)) > a.size {
		return fmt.Errorf("write of %d bytes at %d: the buffer has %d", len(data), offset, a.size)
	}
	copy(a.data[offset:], data)
	a.define(offset, int64(len(data)))
	return nil
}

// Read copies from a buffer.
func (d *Device) Read(b bench.Buffer, offset int64, data []byte) error {
	a, err := d.buffer(b)
	if err != nil {
		return err
	}
	if offset < 0 || offset+int64(len(data)) > a.size {
		return fmt.Errorf("read of %d bytes at %d: the buffer has %d", len(data), offset, a.size)
	}
	copy(data, a.data[offset:])
	return nil
}

// Unwritten tells which bytes of a buffer were never written; nil if all were.
func (d *Device) Unwritten(b bench.Buffer) ([]uint64, error) {
	a, err := d.buffer(b)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(a.undef, func(word uint64) bool { return word != 0 }) {
		return nil, nil
	}
	return slices.Clone(a.undef), nil
}

func (d *Device) buffer(b bench.Buffer) (*allocation, error) {
	a := d.mem.find(b.Address)
	if a == nil || a.addr != b.Address || a.size != b.Size || a.module {
		return nil, fmt.Errorf("buffer at %#x of %d bytes: not in use", b.Address, b.Size)
	}
	return a, nil
}

// Load reads a PTX module. A kernel is decoded when it is launched first; what
// of it the virtual machine can't execute is refused then.
func (d *Device) Load(ctx context.Context, file string, src []byte) (_ *bench.Module, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = internalError("loading "+file, cause)
		}
	}()
	tree, err := ptx.Load(file, src)
	if err != nil {
		return nil, err
	}
	gpu, err := d.gpuFor(tree)
	if err != nil {
		return nil, err
	}
	m, err := loadModule(d, tree, gpu)
	if err != nil {
		return nil, err
	}
	d.fitting = gpu
	d.nextID++
	m.info.ID = d.nextID
	d.modules[m.info.ID] = m
	return &m.info, nil
}

// Unload frees a module and its variables.
func (d *Device) Unload(m *bench.Module) error {
	mod, ok := d.modules[m.ID]
	if !ok {
		return fmt.Errorf("module %d: not loaded", m.ID)
	}
	mod.free()
	delete(d.modules, m.ID)
	return nil
}

// Close frees everything.
func (d *Device) Close() error {
	d.modules = map[int]*module{}
	d.mem.init()
	return nil
}

// gpuFor picks the GPU a module runs on: the one asked for, if it runs the
// module's target, otherwise the oldest that does.
func (d *Device) gpuFor(m *ptx.Module) (*target.GPU, error) {
	arch := ""
	for _, t := range m.Targets {
		if strings.HasPrefix(t, "sm_") {
			arch = t
		}
	}
	want, err := ptx.ParseTarget(arch)
	if err != nil {
		return nil, &ptx.Error{File: m.File, Msg: err.Error()}
	}
	if g := d.opt.GPU; g != nil {
		if !runs(g, want) {
			return nil, &ptx.Error{File: m.File, Msg: fmt.Sprintf("target %s: %s is sm_%d, want a GPU that runs it", arch, g.ID, g.CC.SM())}
		}
		return g, nil
	}
	var best *target.GPU
	for _, g := range target.All() {
		if runs(g, want) && (best == nil || g.CC.SM() < best.CC.SM()) {
			best = g
		}
	}
	if best == nil {
		return nil, &ptx.Error{File: m.File, Msg: fmt.Sprintf("target %s: no GPU that the virtual machine knows runs it", arch)}
	}
	return best, nil
}

// runs says whether a GPU runs PTX of a target: any older one, with the suffix
// 'a' only its own, with 'f' those of its family from it on (PTX ISA, .target).
func runs(g *target.GPU, t ptx.Target) bool {
	sm := g.CC.SM()
	switch t.Suffix {
	case 'a':
		return sm == t.SM
	case 'f':
		return sm/10 == t.SM/10 && sm >= t.SM
	}
	return sm >= t.SM
}
