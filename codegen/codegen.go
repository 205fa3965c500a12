// Package codegen lowers tile programs to thread programs: staging through shared
// memory, loops split at their masks, layouts, thread code, clean-up. Printers in
// codegen/cudac and codegen/ptx turn thread programs into text.
//
// No kernel family is known here, and what an architecture can do is asked of the
// target alone.
package codegen

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
)

// ErrUnsupported is in every error that says a program asks for something the
// code generator can't do for the target.
var ErrUnsupported = errors.New("not supported")

// ErrResources is in every error that says a program does not fit the target.
var ErrResources = errors.New("does not fit the GPU")

// Options are what a compilation may be told beside program and target.
type Options struct {
	// Dump, if not nil, gets each kernel after each pass: the pass's name and the
	// program's text.
	Dump func(kernel, pass, text string)
	// Verify checks the program between passes.
	Verify bool
	// Portable leaves out what only the GPU's own architecture has, such as wgmma on
	// sm_90a, and tensor maps: the code also runs on later GPUs, and whatever launches it
	// needs no more than a driver's launch.
	Portable bool
	// Prologue has the tensor maps made on the GPU, by a small kernel that is launched
	// before the others, for whoever cannot encode them. A program without any is as it
	// was.
	Prologue bool
}

// Compiled is a program lowered for a target: one module for all its kernels.
type Compiled struct {
	Program *ir.Program // as written
	// Launched is the program as Plan launches it: as written, or with the kernel of
	// Options.Prologue before the others, and the buffers that it fills.
	Launched *ir.Program
	Staged   []*ir.Kernel // of the kernels as written
	Module   *simt.Module
	Kernels  []Kernel
}

// Kernel is what launching a compiled kernel takes.
type Kernel struct {
	Name        string
	Params      []Param
	Threads     int       // in a block, along x
	SharedBytes int       // dynamic shared memory; 0 when it is static
	Cluster     int       // blocks of a cluster: neighbours along the first axis of the tile space, which is rounded up to whole ones
	PerTile     int       // blocks of a cluster that have a tile together; 1: each has its own
	Space       []ir.Expr // tiles along each axis, and the blocks of a tile where they are several
	Waits       bool      // for the launch before, so that it may start while that one runs
	Maps        []Param   // tensor maps that a prologue makes, in the order in which they lie in the buffer that is the last parameter
	Wave        int64     // blocks of a persistent kernel at most, in whole clusters; 0: each tile has a block
	Snake       bool      // of such blocks, every other round of tiles begins at the last
	Assume      []Assumption
	// Bounds are what a launch must check beside: each, over the sizes and integer
	// scalars by name, must be at most math.MaxInt32, so that no index leaves 32 bits.
	Bounds []ir.Expr
	Notes  []string // what the target has and the kernel goes without, and why
}

// TensorMaps tells whether launches take tensor maps as parameters.
func (c *Compiled) TensorMaps() bool {
	return slices.ContainsFunc(c.Kernels, func(k Kernel) bool {
		return slices.ContainsFunc(k.Params, func(p Param) bool { return p.Kind == ParamTensorMap })
	})
}

// Assumption is something a launch must check of its arguments.
type Assumption struct {
	Kind   ir.AssumeKind
	Arg    int // parameter of the kernel
	Dim    int
	Lo, Hi int64
}

// InternalError is a bug of kgen: a pass that panicked or broke its program.
type InternalError struct {
	Pass   string
	Kernel string
	IR     string // the kernel before the pass
	Cause  error
	Stack  []byte
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("bug in kgen: pass %s of kernel %s: %v", e.Pass, e.Kernel, e.Cause)
}

func (e *InternalError) Unwrap() error { return e.Cause }

// Compile lowers a program for a GPU. The program is not changed. An error is the
// program's fault (ErrUnsupported, ErrResources, a verifier's) or an InternalError.
func Compile(p *ir.Program, gpu *target.GPU, o Options) (*Compiled, error) {
	if err := ir.Verify(p); err != nil {
		return nil, err
	}
	if err := Supports(gpu); err != nil {
		return nil, err
	}
	c := &Compiled{Program: p, Launched: p, Module: &simt.Module{Arch: archOf(gpu), SM: gpu.CC.SM()}}
	states := make([]*state, len(p.Kernels))
	made := false // tensor maps, by a prologue: where there are some
	for i, k := range p.Kernels {
		s, err := c.prepare(k, gpu, o)
		if err != nil {
			return nil, err
		}
		if states[i] = s; o.Prologue {
			if err := s.runUntil("lower", o); err != nil {
				return nil, err
			}
			made = made || takesMaps(s.kernel.Body)
		}
	}
	for i, s := range states {
		if made {
			s.machine.waits, s.machine.made = true, takeMaps(s.kernel)
		}
		if err := s.runUntil("", o); err != nil {
			return nil, err
		}
		if err := c.add(s, p.Kernels[i], gpu); err != nil {
			return nil, err
		}
	}
	if made {
		if err := c.addPrologue(); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(c.Module.Kernels, (*simt.Kernel).Specific) {
		c.Module.Arch = gpu.Arch()
	}
	return c, nil
}

// leastCC is the oldest compute capability that lowering knows: it takes ldmatrix and
// the m16n8k8 tensor instruction for granted.
var leastCC = target.CC{Major: 7, Minor: 5}

// Supports refuses a GPU that no code is generated for, with ErrUnsupported.
func Supports(gpu *target.GPU) error {
	if !gpu.CC.AtLeast(leastCC.Major, leastCC.Minor) {
		return fmt.Errorf("%s: compute capability %s: %w: want %s or newer", gpu.ID, gpu.CC, ErrUnsupported, leastCC)
	}
	return nil
}

// archOf is the target to compile for: what is specific to one architecture is asked
// for only where the lowering uses it.
func archOf(gpu *target.GPU) string { return fmt.Sprintf("sm_%d", gpu.CC.SM()) }

// prepare begins the lowering of a kernel.
func (c *Compiled) prepare(k *ir.Kernel, gpu *target.GPU, o Options) (*state, error) {
	if w := k.Hints.Warps; w > 32 || w != pow2(w) && w%warpgroup != 0 {
		return nil, fmt.Errorf("kernel %s: %d warps: %w: want a power of two or a multiple of %d, up to 32", k.Name, w, ErrUnsupported, warpgroup)
	}
	own := !o.Portable && k.Hints.Portable == 0
	s := &state{kernel: k.Clone(), machine: &machine{
		sm: gpu.CC.SM(), wgmma: own && gpu.Arch() == "sm_90a", maps: own && gpu.CC.AtLeast(9, 0), shared: gpu.Limits().SharedPerBlock,
	}}
	s.machine.waits, s.machine.lets = c.dependences(k.Name, gpu)
	s.machine.changing = s.machine.waits
	s.machine.reread = c.reread(k.Name)
	return s, nil
}

// add takes a lowered kernel in; k is the kernel as written.
func (c *Compiled) add(s *state, k *ir.Kernel, gpu *target.GPU) error {
	if most := s.machine.shared; s.thread.Shared > most {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w: want at most %d", k.Name, s.thread.Shared, ErrResources, most)
	}
	perTile := dividedBy(s.kernel)
	out := Kernel{Name: k.Name, Params: s.params, Threads: s.thread.Threads, Cluster: s.thread.Cluster, PerTile: perTile, Bounds: s.bounds, Notes: s.machine.notes}
	out.Waits, out.Maps = s.machine.waits, s.maps
	if s.thread.Persistent {
		out.Wave, out.Snake = waveOf(gpu, k, out.Cluster), s.thread.Snake
	}
	if s.thread.Dynamic {
		out.SharedBytes = s.thread.Shared
	}
	for i, a := range k.Space {
		if n := out.Cluster / perTile; i == 0 && n > 1 {
			blocks := ir.Lit(int64(n))
			a.Count = a.Count.CeilDiv(blocks).Times(blocks)
		}
		out.Space = append(out.Space, a.Count)
	}
	if perTile > 1 {
		out.Space = append(out.Space, ir.Lit(int64(perTile)))
	}
	for _, a := range k.Assume {
		for i, p := range k.Params {
			if p == a.Param {
				out.Assume = append(out.Assume, Assumption{Kind: a.Kind, Arg: i, Dim: a.Dim, Lo: a.Lo, Hi: a.Hi})
			}
		}
	}
	c.Staged = append(c.Staged, s.kernel)
	c.Module.Kernels = append(c.Module.Kernels, s.thread)
	c.Kernels = append(c.Kernels, out)
	return nil
}

// dependences tells whether a kernel is launched while the step before may still run, and
// whether the step after it may be: where launches can say so.
func (c *Compiled) dependences(kernel string, gpu *target.GPU) (waits, lets bool) {
	if gpu.CC.SM() < 90 {
		return false, false
	}
	for i, s := range c.Program.Steps {
		if s.Kernel == kernel {
			waits, lets = waits || i > 0, lets || i+1 < len(c.Program.Steps)
		}
	}
	return waits, lets
}

// reread lists the parameters of a kernel that a later step is passed, too.
func (c *Compiled) reread(kernel string) []int {
	var params []int
	for i, s := range c.Program.Steps {
		if s.Kernel != kernel {
			continue
		}
		for p, arg := range s.Args {
			if slices.ContainsFunc(c.Program.Steps[i+1:], func(later ir.Step) bool { return slices.Contains(later.Args, arg) }) {
				params = append(params, p)
			}
		}
	}
	return params
}

// state is a kernel on its way through the pipeline.
type state struct {
	kernel  *ir.Kernel
	done    int // passes of the pipeline
	machine *machine
	thread  *simt.Kernel
	params  []Param
	maps    []Param
	bounds  []ir.Expr
}

// text is the kernel as it stands.
func (s *state) text() string {
	if s.thread != nil {
		return s.thread.String()
	}
	return s.kernel.String()
}

// runUntil applies the passes that come before the named one; all that are left for "".
func (s *state) runUntil(name string, o Options) error {
	for ; s.done < len(pipeline) && pipeline[s.done].name != name; s.done++ {
		if err := s.run(pipeline[s.done], o); err != nil {
			return err
		}
	}
	return nil
}

// run applies a pass, verifies and dumps its result, and turns a panic into an
// InternalError.
func (s *state) run(p pass, o Options) (err error) {
	var before string
	if o.Verify {
		before = s.text()
	}
	name := s.kernel.Name
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			err = &InternalError{Pass: p.name, Kernel: name, IR: before, Cause: fmt.Errorf("%v", r), Stack: debug.Stack()}
		}
	}()
	if err := p.apply(s); err != nil {
		return err
	}
	if o.Dump != nil {
		o.Dump(name, p.name, s.text())
	}
	if !o.Verify {
		return nil
	}
	if err := s.verify(); err != nil {
		return &InternalError{Pass: p.name, Kernel: name, IR: before, Cause: err}
	}
	return nil
}

func (s *state) verify() error {
	if s.thread != nil {
		return simt.Verify(s.thread)
	}
	return ir.VerifyKernel(s.kernel)
}

// PTX prints the module as PTX of the lowest version its instructions need.
func (c *Compiled) PTX() (string, error) {
	m, err := ptx.FromSIMT(c.Module)
	if err != nil {
		return "", err
	}
	return m.String(), nil
}

// CUDA prints the module as CUDA C that includes nothing.
func (c *Compiled) CUDA() (string, error) {
	s, err := cudac.Print(c.Module)
	if err != nil {
		return "", err
	}
	return s.Text, nil
}
