// Package tune searches a family's space of configurations for a problem on a GPU:
// enumerate, compile, read the resources, drop what does not fit, predict a time,
// verify the best on the virtual machine, record everything.
package tune

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/kgen-dev/kgen/codegen/cache"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// Options say what to tune and with what.
type Options struct {
	Family  *family.Family
	Problem family.Problem
	GPU     *target.GPU

	Toolchain Toolchain
	Cache     *cache.Cache // of compiled kernels; nil: none
	Store     *store.Store // where every evaluation goes
	Dir       string       // folder of the artifacts; made if it is not there

	// Trials compiles and checks configurations, given as a Kernel takes them; nil: this
	// process does.
	Trials trial.Bench
	// Slots is how many configurations Trials compiles at a time, which may change; nil:
	// Workers.
	Slots func() int
	// Timer times the best on a device of that name; nil: their times are predicted.
	Timer  trial.Bench
	Driver string

	Seed    uint64
	Configs int           // most configurations to compile; 0: DefaultConfigs
	Time    time.Duration // after which none is compiled any more; 0: as long as it takes
	Top     int           // how many to verify and report; 0: DefaultTop
	Workers int           // configurations that this process works on at a time; 0: one for each core

	Command string // for the store's record of the run
	Version string // of kgen, likewise

	// Build identifies the code that runs, such as the digest of the program: what it
	// would compute again in every run is kept in the cache under it. "" keeps nothing.
	Build string

	// Progress, if not nil, is called as the run goes on, by one goroutine at a time.
	Progress func(Progress)
	// Log gets what a person looking for a cause wants to know; nil: nothing.
	Log *slog.Logger
}

// Defaults of Options.
const (
	DefaultConfigs = 64
	DefaultTop     = 10
)

// Phase is a part of a run.
type Phase string

// The phases, in order.
const (
	Rank    Phase = "rank"    // every valid configuration by a first estimate
	Compile Phase = "compile" // the most promising: compiled, pruned, predicted
	Verify  Phase = "verify"  // the best on the virtual machine
	Measure Phase = "measure" // the best on the device, if there is one
)

// Progress is where a run stands.
type Progress struct {
	Phase       Phase
	Done, Total int           // configurations of the phase
	Compiled    int           // configurations with a cubin so far
	Failed      int           // configurations that came to nothing so far
	Best        *Best         // so far; nil before the first
	Left        time.Duration // estimated for the phase; 0: not known yet
}

// ErrNothing says that not one configuration could be predicted.
var ErrNothing = errors.New("no configuration is left")

// ErrNoRate says that the GPU's rates are not known, so that no time can be predicted.
var ErrNoRate = errors.New("nothing can be predicted")

// Run tunes. A cancelled run leaves the store whole and returns the context's error;
// the same run started again goes on from there. Configurations that a check found wrong
// are no error: the result names them, apart from the best.
func Run(ctx context.Context, o Options) (*Result, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	ranked, err := s.rank(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.evaluate(ctx, ranked)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s on %s: %w: %s", o.Family.Name, s.GPU.Name, ErrNothing, s.why(ranked))
	}
	top, err := s.verify(ctx, found)
	if err != nil {
		return nil, err
	}
	if s.Timer == nil {
		top, err = s.confirm(ctx, top)
	} else {
		top, err = s.measure(ctx, found, top)
	}
	if err != nil {
		return nil, err
	}
	return s.finish(ctx, found, top)
}

// why says what became of the configurations.
func (s *session) why(ranked []candidate) string {
	text := s.result.Removed.String()
	for _, f := range explore.Causes(s.failed) {
		text += fmt.Sprintf("; %s: %d", f.Outcome, f.Count)
	}
	for _, c := range ranked {
		if c.err != nil {
			return text + fmt.Sprintf("; for example %s: %v", c.config, c.err)
		}
	}
	return text
}

// fill puts in what the caller left out.
func (o *Options) fill() {
	if o.Configs <= 0 {
		o.Configs = DefaultConfigs
	}
	if o.Top <= 0 {
		o.Top = DefaultTop
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}
