package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/model"
	"github.com/kgen-dev/kgen/tune/store"
)

// Prepare makes the buffers and what the reference says that they must hold. It is done
// once, before the first run, which calls it if nobody did.
func (k *Kernel) Prepare(ctx context.Context) error {
	k.mu.Lock()
	ready := k.buffers != nil
	k.mu.Unlock()
	if ready {
		return nil
	}
	args, err := k.Spec.Buffers(k.Seed)
	if err != nil {
		return err
	}
	var data []bench.CaseBuffer
	for _, a := range args {
		if a.Buffer != nil {
			data = append(data, *a.Buffer)
		}
	}
	if k.Spec.Reference != nil {
		if err := k.reference(ctx, args, data); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buffers, k.data = args, data
	return nil
}

// reference runs the reference and takes what it leaves in the buffers as what is right.
func (k *Kernel) reference(ctx context.Context, args []*bench.Argument, data []bench.CaseBuffer) error {
	run, key, err := k.referenceCase(ctx, args, data)
	if err != nil || k.remembered(key, data) {
		return err
	}
	r, err := bench.RunCase(ctx, k.Device, run, bench.RunOptions{Keep: true})
	if err == nil {
		if why := faultOf(r); why != "" {
			err = mistake{errors.New(why)}
		}
	}
	if err != nil {
		return k.inReference(err)
	}
	for i := range data {
		data[i].Want, data[i].Unset = r.Kept[i], r.Unwritten[i]
	}
	k.remember(key, data)
	return nil
}

// referenceCase compiles the reference and says how it is run, with the key under which
// what it computes is remembered.
func (k *Kernel) referenceCase(ctx context.Context, args []*bench.Argument, data []bench.CaseBuffer) (c *bench.Case, key cache.Key, err error) {
	ref := k.Spec.Reference
	made, err := k.cubin(ctx, ref.Source, ref.Kernel, ref.Defines)
	if err != nil {
		return nil, key, k.inReference(err)
	}
	l, err := k.Spec.ReferenceLaunch()
	if err != nil {
		return nil, key, k.inReference(mistake{err})
	}
	if l.Args, err = k.Spec.Values(k.Spec.AnyPoint(), args); err != nil {
		return nil, key, k.inReference(mistake{err})
	}
	l.Kernel = made.kernel.Name
	c = &bench.Case{File: ref.Source, PTXFile: ref.Source + ".ptx", PTX: made.ptx, Buffers: data, Launches: []bench.CaseLaunch{l}}
	return c, k.referenceKey(made, &l), nil
}

// faultOf says what went wrong in a run beside its results; "" if nothing did.
func faultOf(r *bench.Result) string {
	if r.Failure != nil {
		return r.Failure.Error()
	}
	for _, f := range r.Faults {
		return fmt.Sprintf("%s: %s", f.Class, f.Message)
	}
	return ""
}

// Run implements Bench.
func (k *Kernel) Run(ctx context.Context, point []int, samples int) (Ran, error) {
	start := time.Now()
	p, err := k.program(ctx, point)
	if err != nil {
		return Ran{}, err
	}
	if samples == Again {
		return k.again(ctx, point, p)
	}
	if err := k.Prepare(ctx); err != nil {
		return Ran{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, err := k.run(ctx, point, p, samples)
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

// again checks a program over contents and a reference of another seed.
func (k *Kernel) again(ctx context.Context, point []int, p *program) (Ran, error) {
	other := &Kernel{Spec: k.Spec, Compiler: k.Compiler, Device: k.Device, Flags: k.Flags, Includes: k.Includes, Seed: k.Seed + 1, Called: k.Called, Cache: k.Cache}
	other.keep(pointKey(point), &program{built: p.built, ptx: p.ptx, kernel: p.kernel, launch: p.launch})
	return other.Run(ctx, point, 0)
}

// program is a point's, compiled again if it was forgotten.
func (k *Kernel) program(ctx context.Context, point []int) (*program, error) {
	for range 2 {
		k.mu.Lock()
		p := k.programs[pointKey(point)]
		k.mu.Unlock()
		if p != nil {
			return p, nil
		}
		b, err := k.Compile(ctx, point)
		if err != nil {
			return nil, err
		}
		if b.Outcome != "" {
			return nil, fmt.Errorf("configuration %q cannot be run: %s", k.Spec.Space.At(point), b.Error)
		}
	}
	return nil, errors.New("a program was forgotten at once")
}

func (k *Kernel) run(ctx context.Context, point []int, p *program, samples int) (Ran, error) {
	c, err := k.caseOf(point, p, k.buffers, k.data)
	if err != nil {
		return Ran{}, err
	}
	r := Ran{Outcome: store.Correct}
	if !p.checked || samples == 0 || k.Device.Provenance() == bench.Counted {
		if r, err = k.check(ctx, c, p); err != nil || !r.Outcome.Timed() {
			return r, k.ofArguments(point, err)
		}
		p.checked = true
	}
	r.Verified = k.compared()
	if k.Device.Provenance() == bench.Counted {
		return r, nil
	}
	r.Outcome, r.Provenance = store.Correct, bench.Measured
	if samples == 0 {
		return r, nil
	}
	r.Samples, err = k.time(ctx, c, samples)
	return k.classified(ctx, r, err)
}

// compared tells whether any buffer's contents are known.
func (k *Kernel) compared() bool {
	for i := range k.data {
		if k.data[i].Want != nil {
			return true
		}
	}
	return false
}

func (k *Kernel) caseOf(point []int, p *program, args []*bench.Argument, data []bench.CaseBuffer) (*bench.Case, error) {
	l := p.launch
	l.Kernel = p.kernel
	var err error
	if l.Args, err = k.Spec.Values(point, args); err != nil {
		return nil, err
	}
	return &bench.Case{
		File: k.Spec.Name, PTXFile: k.Spec.Source + ".ptx", PTX: p.ptx,
		Launches: []bench.CaseLaunch{l}, Tolerance: k.Spec.Tolerance, Buffers: data,
	}, nil
}

// check runs a program once over fresh buffers and compares them.
func (k *Kernel) check(ctx context.Context, c *bench.Case, p *program) (Ran, error) {
	opt := bench.RunOptions{}
	counted := k.Device.Provenance() == bench.Counted
	if counted {
		opt.Blocks = spread(c.Launches[0].Grid, k.Spec.Blocks)
	}
	res, err := bench.RunCase(ctx, k.Device, c, opt)
	if err != nil {
		return k.classified(ctx, Ran{}, err)
	}
	if why := faultOf(res); why != "" {
		return failed(store.Runtime, errors.New(why)), nil
	}
	for _, b := range res.Buffers {
		if b.First != nil {
			return failed(store.Correctness, fmt.Errorf("buffer %d: %d elements are wrong; the first: %v", b.Arg, b.Mismatches, b.First)), nil
		}
	}
	if !counted {
		return Ran{Outcome: store.Correct}, nil
	}
	return k.predict(c, p, res.Counters)
}

// predict is the time that counted work takes by the cost model.
func (k *Kernel) predict(c *bench.Case, p *program, counters *bench.Counters) (Ran, error) {
	l := &c.Launches[0]
	grid := int64(l.Grid[0]) * int64(l.Grid[1]) * int64(l.Grid[2])
	launched := model.Launched{Kernel: k.Spec.Kernel, Blocks: grid, Threads: threadsOf(l), Dynamic: int(l.SharedBytes), Counters: counters}
	b := &p.built
	m, err := model.Counted(k.Spec.GPU, launched, model.Resources{Registers: b.Registers, Shared: b.SharedBytes - int(l.SharedBytes)})
	if err != nil {
		return failed(store.Resources, err), nil
	}
	a, err := roofline.Assess(roofline.DeviceRoofs(k.Spec.GPU), m.Work)
	if err != nil {
		return failed(store.Runtime, err), nil
	}
	r := Ran{Outcome: store.Predicted, TimeUS: m.US, Provenance: bench.Predicted, Limits: a.Limits(), Terms: m.Parts()}
	if k.compared() {
		r.Outcome = store.Correct
	}
	return r, nil
}

// classified turns the error of a run into an outcome, unless nothing more can be run.
func (k *Kernel) classified(ctx context.Context, r Ran, err error) (Ran, error) {
	var bug *bench.InternalError
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.As(err, &bug), errors.As(err, new(*bench.ArgumentsError)):
		return r, err
	}
	return failed(store.Runtime, err), nil
}

// spread picks n blocks all over a grid, its corners among them; nil is all.
func spread(grid [3]uint32, n int) [][3]uint32 {
	total := int64(grid[0]) * int64(grid[1]) * int64(grid[2])
	if n == 0 || int64(n) >= total {
		return nil
	}
	blocks := make([][3]uint32, n)
	for i := range blocks {
		at := uint64(total-1) * uint64(i) / uint64(max(1, n-1))
		x, y := uint64(grid[0]), uint64(grid[1])
		blocks[i] = [3]uint32{uint32(at % x), uint32(at / x % y), uint32(at / x / y)}
	}
	return blocks
}

// time launches a program over and over on a device that measures, each time over fresh
// buffers, which also leaves the same in its caches, and returns each launch's
// microseconds. The first launch, which loads the code, is not counted.
func (k *Kernel) time(ctx context.Context, c *bench.Case, samples int) ([]float64, error) {
	t, err := bench.NewTimer(ctx, k.Device, c)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if _, err := t.Time(ctx); err != nil {
		return nil, err
	}
	var out []float64
	for range samples {
		took, err := t.Time(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, float64(took)/float64(time.Microsecond))
	}
	return out, nil
}
