package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
)

// RunOptions says how to run a case.
type RunOptions struct {
	// Blocks limits every launch to these blocks. Then only elements that the
	// run changed, or wrote first, are compared.
	Blocks [][3]uint32

	// Dump is a folder for the buffers' contents after the last launch, as
	// .npy files; "" is none.
	Dump string

	Lines bool // count by line too

	Keep bool // the buffers' contents after the last launch, in Result.Kept
}

// Result is what running a case gave. Its JSON is what `kgen run --json`
// prints.
type Result struct {
	Kernel       string         `json:"kernel"` // several launches: joined by ", "
	Launches     int            `json:"launches"`
	Device       string         `json:"device"`
	OK           bool           `json:"ok"`
	Buffers      []BufferResult `json:"buffers"` // one for each buffer with a wanted content
	Faults       []Fault        `json:"faults"`
	MissingFault FaultClass     `json:"missing_fault,omitempty"` // that the case names and no one reported
	Counters     *Counters      `json:"counters"`                // over all launches; null of a device that measures
	TimeUS       float64        `json:"time_us,omitempty"`       // of all launches, of a device that measures
	Lines        []LineCount    `json:"lines,omitempty"`         // the same by line, where asked for
	Provenance   Provenance     `json:"provenance"`              // of the counters, or of the time
	Printed      string         `json:"printed,omitempty"`
	Failure      *KernelError   `json:"failure,omitempty"` // why the kernel ended the last launch itself; then no buffer is compared
	Kept         [][]byte       `json:"-"`                 // by buffer, if asked for and without a failure
	Unwritten    [][]bool       `json:"-"`                 // beside Kept: by element, those never written; nil where all were
}

// BufferResult compares a buffer with what it should hold.
type BufferResult struct {
	Arg        int                `json:"arg"` // argument, or place among the named buffers
	Name       string             `json:"name,omitempty"`
	Mismatches int64              `json:"mismatches"`
	MaxAbs     float64            `json:"max_absolute_error"`
	MaxRel     *float64           `json:"max_relative_error"` // where what is wanted is not 0; null if all that differs should be 0
	First      *numcheck.Mismatch `json:"first"`              // null if all are right

	// NotCompared are the elements that a run of some blocks left as they were.
	NotCompared int64 `json:"not_compared,omitempty"`
}

// ArgumentsError says that a launch's arguments are not those of its kernel. It is the
// cause of an *InputError.
type ArgumentsError struct{ Err error }

func (e *ArgumentsError) Error() string { return e.Err.Error() }
func (e *ArgumentsError) Unwrap() error { return e.Err }

// RunCase loads a case's PTX, runs its launches in order over its buffers and
// compares. An *InputError says that the case does not fit the PTX or a
// launch; other errors are the device's.
func RunCase(ctx context.Context, dev Device, c *Case, opt RunOptions) (*Result, error) {
	r, err := prepare(ctx, dev, c, opt)
	if err != nil {
		return nil, err
	}
	defer r.release()
	if err := r.launch(); err != nil {
		return nil, err
	}
	if err := r.compare(); err != nil {
		return nil, err
	}
	return r.finish(), nil
}

// CheckArguments loads a case's PTX and compares its launches with the kernels there: their
// names, and their arguments' number and sizes. Errors are those of RunCase.
func CheckArguments(ctx context.Context, dev Device, c *Case) error {
	r, err := load(ctx, dev, c, RunOptions{})
	if err != nil {
		return err
	}
	r.release()
	return nil
}

// load loads a case's module and compares the launches with it; release frees it.
func load(ctx context.Context, dev Device, c *Case, opt RunOptions) (*caseRun, error) {
	m, err := dev.Load(ctx, c.PTXFile, c.PTX)
	if err != nil {
		return nil, loadError(err)
	}
	r := &caseRun{ctx: ctx, dev: dev, c: c, opt: opt, module: m}
	if err := r.fits(); err != nil {
		r.release()
		return nil, &InputError{err}
	}
	return r, nil
}

// prepare loads a case's module and fills its buffers; release frees both.
func prepare(ctx context.Context, dev Device, c *Case, opt RunOptions) (*caseRun, error) {
	r, err := load(ctx, dev, c, opt)
	if err != nil {
		return nil, err
	}
	if err := r.allocate(); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func (r *caseRun) release() {
	for _, b := range r.buffers {
		r.dev.Free(b)
	}
	r.dev.Unload(r.module)
}

// loadError is why a module was not loaded: its fault, unless the device's.
func loadError(err error) error {
	var bug *InternalError
	if errors.As(err, &bug) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &InputError{err}
}

type caseRun struct {
	ctx     context.Context
	dev     Device
	c       *Case
	opt     RunOptions
	module  *Module
	buffers []Buffer
	first   [][]byte // by buffer: what it holds at first; nil where the device tracks that it is nothing
	result  Result

	counters Counters
}

// fits compares launches with the kernels of the module.
func (r *caseRun) fits() error {
	for i := range r.c.Launches {
		l := &r.c.Launches[i]
		k, err := r.module.Kernel(l.Kernel)
		if err != nil {
			return fmt.Errorf("%s: %w", r.c.PTXFile, err)
		}
		if err := r.argsFit(k, l); err != nil {
			return &ArgumentsError{fmt.Errorf("%s: %w", r.c.File, err)}
		}
	}
	return nil
}

func (r *caseRun) argsFit(k *Kernel, l *CaseLaunch) error {
	if len(l.Args) != len(k.Params) {
		return fmt.Errorf("kernel %s: %d arguments: want %d (%s)", k.Name, len(l.Args), len(k.Params), k.signature())
	}
	for i, a := range l.Args {
		size := a.size()
		if p := k.Params[i]; size != p.Size {
			return fmt.Errorf("kernel %s: args[%d] is %s of %d bytes: want %d bytes for parameter %s (.%s)", k.Name, i, a.Kind, size, p.Size, p.Name, p.Type)
		}
	}
	return nil
}

// signature lists a kernel's parameter types.
func (k *Kernel) signature() string {
	if len(k.Params) == 0 {
		return "none"
	}
	types := make([]string, len(k.Params))
	for i, p := range k.Params {
		types[i] = p.Type
		if n := p.Size; n > 8 {
			types[i] = fmt.Sprintf("%d bytes", n)
		}
	}
	return strings.Join(types, ", ")
}

func (r *caseRun) allocate() error {
	for i := range r.c.Buffers {
		b := &r.c.Buffers[i]
		d, err := r.dev.Alloc(b.Size(), b.Align)
		if err != nil {
			return fmt.Errorf("buffer %s: %w", b.label(), err)
		}
		r.buffers = append(r.buffers, d)
		first := b.Data
		if _, tracks := r.dev.(Tracker); first == nil && !tracks {
			first = b.poison(r.c.Tolerance)
		}
		r.first = append(r.first, first)
	}
	return r.fill()
}

// fill writes what the buffers hold at first.
func (r *caseRun) fill() error {
	for i := range r.c.Buffers {
		b := &r.c.Buffers[i]
		if r.first[i] == nil {
			continue
		}
		if err := r.dev.Write(r.buffers[i], 0, r.first[i]); err != nil {
			return fmt.Errorf("buffer %s: %w", b.label(), err)
		}
	}
	return nil
}

// label names a buffer for messages and files.
func (b *CaseBuffer) label() string {
	if b.Name != "" {
		return b.Name
	}
	return fmt.Sprintf("arg%d", b.Arg)
}

func (r *caseRun) launch() error {
	var names []string
	for i := range r.c.Launches {
		l := &r.c.Launches[i]
		names = append(names, l.Kernel)
		args, err := r.args(l)
		if err != nil {
			return err
		}
		report, err := r.dev.Launch(r.ctx, r.module, l.Kernel, Launch{
			Grid: l.Grid, Block: l.Block, Cluster: l.Cluster, SharedBytes: l.SharedBytes,
			Args: args, Blocks: r.opt.Blocks, Lines: r.opt.Lines,
		})
		if err != nil && !errors.As(err, &r.result.Failure) {
			return err // which names the kernel
		}
		r.result.Faults = append(r.result.Faults, report.Faults...)
		r.counters.Add(&report.Counters)
		r.result.Lines = SumLines(append(r.result.Lines, report.Lines...))
		r.result.TimeUS += float64(report.Time) / float64(time.Microsecond)
		r.result.Printed += report.Printed
		if r.result.Failure != nil {
			break
		}
	}
	r.result.Kernel = strings.Join(names, ", ")
	return nil
}

func (r *caseRun) args(l *CaseLaunch) ([]Arg, error) {
	args := make([]Arg, len(l.Args))
	for i := range l.Args {
		var err error
		if args[i], err = r.bytes(&l.Args[i]); err != nil {
			return nil, inputErrorf("%s: kernel %s: args[%d]: %w", r.c.File, l.Kernel, i, err)
		}
	}
	return args, nil
}

func (r *caseRun) compare() error {
	if r.result.Failure != nil {
		return nil
	}
	if r.opt.Dump != "" {
		if err := os.MkdirAll(r.opt.Dump, 0o777); err != nil {
			return err
		}
	}
	var files []atomicfile.File
	for i := range r.c.Buffers {
		b := &r.c.Buffers[i]
		if b.Want == nil && r.opt.Dump == "" && !r.opt.Keep {
			continue
		}
		got := make([]byte, b.Size())
		if err := r.dev.Read(r.buffers[i], 0, got); err != nil {
			return fmt.Errorf("buffer %s: %w", b.label(), err)
		}
		never, err := r.unwritten(i, got)
		if err != nil {
			return fmt.Errorf("buffer %s: %w", b.label(), err)
		}
		if b.Want != nil {
			res, err := r.compareBuffer(i, got, never)
			if err != nil {
				return fmt.Errorf("buffer %s: %w", b.label(), err)
			}
			r.result.Buffers = append(r.result.Buffers, res)
		}
		if r.opt.Keep {
			r.result.Kept = append(r.result.Kept, got)
			r.result.Unwritten = append(r.result.Unwritten, never)
		}
		if r.opt.Dump != "" {
			files = append(files, NPYFile(filepath.Join(r.opt.Dump, b.label()+".npy"), &Array{b.Type.DType(), b.Shape, got}))
		}
	}
	return atomicfile.Write(files...)
}

// finish judges the run.
func (r *caseRun) finish() *Result {
	res := &r.result
	res.Launches = len(r.c.Launches)
	res.Device, res.Provenance = r.dev.Name(), r.dev.Provenance()
	if res.Buffers == nil {
		res.Buffers = []BufferResult{}
	}
	if res.Provenance == Counted {
		res.Counters = &r.counters
	}
	if r.counters.Tensor == nil {
		r.counters.Tensor = []TensorCount{}
	}
	if res.Faults == nil {
		res.Faults = []Fault{}
	}
	res.OK = len(res.Faults) == 0 && res.Failure == nil
	res.MissingFault = r.c.Fault
	for i := range res.Faults {
		f := &res.Faults[i]
		if f.Expected = f.Class == r.c.Fault; f.Expected {
			res.MissingFault = ""
		}
	}
	for _, b := range res.Buffers {
		res.OK = res.OK && b.Mismatches == 0
	}
	res.OK = res.OK && res.MissingFault == ""
	return res
}
