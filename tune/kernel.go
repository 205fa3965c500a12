package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/cubin"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

const (
	// compileDeadline bounds the compilation of one configuration, checkDeadline its check.
	compileDeadline = 2 * time.Minute
	checkDeadline   = 5 * time.Minute
	// overdue is how much longer a process gets that does not keep its own deadlines.
	overdue = time.Minute
)

// Deadlines are those of the processes that try a family's configurations.
func Deadlines() trial.Deadlines {
	return trial.Deadlines{Compile: compileDeadline + overdue, Run: checkDeadline + overdue}
}

// MostSpill is how many bytes a thread may spill and reload before a configuration is
// dropped: a few registers kept aside cost little, a tile that does not fit costs more
// than any model of ours knows.
const MostSpill = 512

// Kernel tries the configurations of a family's problem in this process: it is a
// trial.Bench. A point is a configuration's values, in the order of its parameters.
type Kernel struct {
	Options
	builder *builder
	space   *space.Bound
	args    []codegen.Argument
	inputs  model.Inputs
	roofs   roofline.Roofs
	device  bench.Device // that runs programs; nil: the virtual machine, made when first needed

	mu       sync.Mutex // of what follows, and of the device
	verifier *verifier
	timer    *timer

	codes sync.Mutex // of what follows
	code  *trial.Code
	coded string // the configuration whose code that is
}

// NewKernel makes a Kernel from those options that say what to tune and with what. device,
// if not nil, runs and times the configurations; else the virtual machine checks them.
func NewKernel(ctx context.Context, o Options, device bench.Device) (*Kernel, error) {
	o.fill()
	k := &Kernel{Options: o, device: device, roofs: roofline.DeviceRoofs(o.GPU), args: Arguments(o.Problem.Args()), inputs: family.Integers(o.Problem.Args())}
	var err error
	if k.space, err = o.Problem.Space(o.GPU); err != nil {
		return nil, err
	}
	k.builder, err = o.Toolchain.builderFor(ctx, o.GPU, o.Cache, o.Log)
	return k, err
}

// config is the configuration of a point.
func (k *Kernel) config(point []int) (space.Config, error) {
	return space.NewConfig(k.space.Space().Names(), point)
}

// pointOf is a configuration's point.
func pointOf(c space.Config) []int {
	point := make([]int, c.Len())
	for i := range point {
		_, point[i] = c.At(i)
	}
	return point
}

// program is a configuration lowered, and planned for the problem's sizes.
type program struct {
	compiled *codegen.Compiled
	plan     *codegen.Plan
}

func (k *Kernel) lower(c space.Config) (*program, error) {
	prog, err := k.Problem.Program(c)
	if err != nil {
		return nil, err
	}
	compiled, err := codegen.Compile(prog, k.GPU, codegen.Options{})
	if err != nil {
		return nil, err
	}
	plan, err := compiled.Plan(k.args)
	if err != nil {
		return nil, err
	}
	return &program{compiled, plan}, nil
}

// print lowers a configuration that could be lowered before, and prints its source.
func (k *Kernel) print(c space.Config) (*program, source, error) {
	p, err := k.lower(c)
	if err != nil {
		return nil, source{}, err
	}
	src, err := k.builder.source(p.compiled)
	if err != nil {
		return nil, source{}, fmt.Errorf("configuration %q: %w", c, err)
	}
	return p, src, nil
}

// build compiles within the deadline.
func (k *Kernel) build(ctx context.Context, p *program, src source) (*built, error) {
	ctx, cancel := context.WithTimeout(ctx, compileDeadline)
	defer cancel()
	return k.builder.build(ctx, src, p.compiled.Module.Arch)
}

// Compile implements trial.Bench: what it makes has a predicted time.
func (k *Kernel) Compile(ctx context.Context, point []int) (trial.Built, error) {
	start := time.Now()
	c, err := k.config(point)
	if err != nil {
		return trial.Built{}, err
	}
	p, src, err := k.print(c)
	if err != nil {
		return trial.Built{}, err
	}
	b := trial.Built{Program: src.hash}
	made, err := k.build(ctx, p, src)
	if err = k.judge(ctx, &b, p, made, err); err != nil {
		if ctx.Err() != nil {
			return b, context.Cause(ctx)
		}
		return b, fmt.Errorf("configuration %q: %w", c, err)
	}
	b.Seconds = time.Since(start).Seconds()
	if b.Outcome == "" {
		k.carry(c, &trial.Code{Built: b, PTX: made.PTX})
	}
	return b, nil
}

// carry keeps a configuration's code, until another's is.
func (k *Kernel) carry(c space.Config, code *trial.Code) {
	k.codes.Lock()
	defer k.codes.Unlock()
	k.code, k.coded = code, c.String()
}

// Code is that of the configuration that was compiled last, for Adopt of another process;
// nil of all others.
func (k *Kernel) Code(point []int) *trial.Code {
	c, err := k.config(point)
	if err != nil {
		return nil
	}
	k.codes.Lock()
	defer k.codes.Unlock()
	if k.coded != c.String() {
		return nil
	}
	return k.code
}

// Adopt takes a configuration's code in place of compiling it for Run. It must be that of
// the source which this process prints.
func (k *Kernel) Adopt(point []int, code *trial.Code) error {
	c, err := k.config(point)
	if err != nil {
		return err
	}
	k.carry(c, code)
	return nil
}

// text is a configuration's PTX to run: what was compiled elsewhere, or is compiled here.
func (k *Kernel) text(ctx context.Context, c space.Config, p *program, src source) ([]byte, error) {
	code := k.Code(pointOf(c))
	switch {
	case code == nil:
	case code.Built.Program != src.hash:
		return nil, fmt.Errorf("configuration %q: its code is that of another source, as another kgen prints it", c)
	default:
		return code.PTX, nil
	}
	b, err := k.build(ctx, p, src)
	if err != nil {
		return nil, err
	}
	return b.PTX, nil
}

// judge fills in what compiling came to. The error is that of a run that cannot go on.
func (k *Kernel) judge(ctx context.Context, b *trial.Built, p *program, made *built, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return drop(b, store.Timeout, fmt.Errorf("not compiled within %s", compileDeadline))
	case refused(err):
		return drop(b, store.Compile, Locate(err, p.compiled))
	case err != nil:
		return err
	}
	if why := nvrtc.Serialised(made.Log); why != "" {
		return drop(b, store.Compile, errors.New(why))
	}
	kernels, err := k.resources(b, p, made)
	if err != nil {
		return err
	}
	prediction, err := model.Predict(k.GPU, p.compiled, p.plan, k.inputs, taken(kernels))
	if errors.Is(err, codegen.ErrResources) {
		return drop(b, store.Resources, err)
	}
	if err != nil {
		return err
	}
	k.describe(b, prediction, kernels)
	if b.SpillBytes > MostSpill {
		return drop(b, store.Resources, fmt.Errorf("%d bytes of spills a thread: want at most %d", b.SpillBytes, MostSpill))
	}
	a, err := roofline.Assess(k.roofs, usefulWork(k.Problem, k.GPU, prediction.Work))
	if err != nil {
		return err
	}
	b.Predicted = &trial.Ran{Outcome: store.Predicted, TimeUS: prediction.US, Provenance: bench.Predicted, Limits: a.Limits(), Terms: prediction.Parts()}
	return nil
}

// drop notes why a configuration comes to nothing, which is no error of the run.
func drop(b *trial.Built, o store.Outcome, err error) error {
	b.Outcome, b.Error = o, err.Error()
	return nil
}

// resources reads what the compiler gave each kernel; nil where there is none.
func (k *Kernel) resources(b *trial.Built, p *program, made *built) (map[string]cubin.Kernel, error) {
	if len(made.Cubin) == 0 {
		return nil, nil
	}
	b.Cubin = digest(made.Cubin)
	b.Same = p.same(b.Cubin)
	kernels, err := made.resources()
	if err != nil {
		return nil, err
	}
	for _, k := range p.compiled.Kernels {
		if _, ok := kernels[k.Name]; !ok {
			return nil, fmt.Errorf("the cubin has no kernel %s", k.Name)
		}
	}
	return kernels, nil
}

// same is the digest of compiled code and of how it is launched.
func (p *program) same(cubin string) string {
	plan, err := json.Marshal(p.plan)
	if err != nil {
		panic(err) // numbers and names can be written
	}
	return digest(append([]byte(cubin), plan...))
}

// taken is what the model asks of compiled kernels.
func taken(kernels map[string]cubin.Kernel) map[string]model.Resources {
	out := map[string]model.Resources{}
	for name, k := range kernels {
		out[name] = model.Resources{Registers: k.Registers, Shared: k.SharedBytes, Spill: k.SpillStoreBytes + k.SpillLoadBytes}
	}
	return out
}

// describe notes the resources of the program's longest step.
func (k *Kernel) describe(b *trial.Built, p *model.Prediction, kernels map[string]cubin.Kernel) {
	for _, step := range p.Steps {
		if step.Unknown > 0 {
			k.Log.Debug("decided by data", "program", b.Program, "kernel", step.Kernel, "decisions", step.Unknown)
		}
	}
	longest := p.Longest()
	if !longest.Estimated {
		b.Registers = longest.Registers
	}
	of := kernels[longest.Kernel]
	b.SharedBytes, b.CTAsPerSM, b.SpillBytes = longest.Shared, longest.Occupancy.CTAs, of.SpillStoreBytes+of.SpillLoadBytes
	for _, u := range of.Units {
		if b.Instructions == nil {
			b.Instructions = map[string]int{}
		}
		b.Instructions[u.Op] = u.Count
	}
}

// Run implements trial.Bench. On the virtual machine it checks a configuration, and one
// that could not be checked is Predicted, its Error saying why. On a device that measures
// it times it over data that the configurations before left in the caches, each time after
// a run that is not counted, and compares parts of its results when they were not before
// or no times are asked for. Again is a check over other data and blocks on the virtual
// machine; on a device that measures, over the same.
func (k *Kernel) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	start := time.Now()
	c, err := k.config(point)
	if err != nil {
		return trial.Ran{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var r trial.Ran
	if k.device == nil {
		r, err = k.check(ctx, c, samples == trial.Again)
	} else {
		r, err = k.time(ctx, c, samples)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, err
}
