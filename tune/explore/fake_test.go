package explore_test

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/median"
	"github.com/kgen-dev/kgen/tune/replay"
	"github.com/kgen-dev/kgen/tune/search"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

const rawSamples = "testdata/convolution_milo__A100.json.gz"

// Environment of the test binary as a child of itself: what it is, and how faulty.
const (
	roleEnv   = "KGEN_EXPLORE_ROLE"   // "device", or "tuner"
	faultsEnv = "KGEN_EXPLORE_FAULTS" // "" for none, or the seed that they follow from
	logEnv    = "KGEN_EXPLORE_LOG"    // file to which the device appends what it does
	storeEnv  = "KGEN_EXPLORE_STORE"
)

// TestMain lets the test binary be the device's process, or the tuner that is killed.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleEnv) {
	case "device":
		var d *fake
		if d, err = newFake(); err == nil {
			err = trial.Serve(context.Background(), d, os.Stdin, os.Stdout)
		}
	case "tuner":
		err = tuneToEnd(os.Getenv(storeEnv))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fault is what a fake device does to a configuration.
type fault int

const (
	none fault = iota
	compileError
	compilerCrash
	launchError
	contextLost
	hang
	wrongResult
	notANumber
	faults
)

// outcomes are how each fault is to be classed.
var outcomes = map[fault]store.Outcome{
	compileError: store.Compile, compilerCrash: store.Compile, launchError: store.Runtime, contextLost: store.Runtime,
	hang: store.Timeout, wrongResult: store.Correctness, notANumber: store.Runtime,
}

// fake is a device that answers from raw samples of a published space, a configuration's
// one after the other, with faults injected.
type fake struct {
	space  *replay.Space
	faults string // their seed; "": none
	log    *os.File
	lost   bool
	next   map[string]int // by point: how many samples were taken
	runs   int
}

func newFake() (*fake, error) {
	s, err := replay.ReadFile(context.Background(), rawSamples)
	if err != nil {
		return nil, err
	}
	f := &fake{space: s, faults: os.Getenv(faultsEnv), next: map[string]int{}}
	if name := os.Getenv(logEnv); name != "" {
		if f.log, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func hashOf(seed string, p search.Point) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, seed, p)
	return h.Sum32()
}

// faultOf is what is done to a point: to one in sixteen of those that ran when they were
// published, some fault each, but to the best none.
func faultOf(s *replay.Space, seed string, p search.Point) fault {
	e := s.Entry(p)
	h := hashOf(seed, p)
	if e.Status != replay.Correct || e.MS < 1.02*s.Optimum().MS || h%16 != 0 {
		return none
	}
	return 1 + fault(h/16)%(faults-1)
}

func (f *fake) fault(p search.Point) fault {
	if f.faults == "" {
		return none
	}
	return faultOf(f.space, f.faults, p)
}

func (f *fake) say(what string, p search.Point) {
	if f.log != nil {
		fmt.Fprintf(f.log, "%s %v\n", what, p)
	}
}

func (f *fake) Compile(_ context.Context, p []int) (trial.Built, error) {
	f.say("compile", p)
	b := trial.Built{Program: fmt.Sprint(p), Cubin: fmt.Sprint(p)}
	switch e := f.space.Entry(p); {
	case e.Status == replay.Compile:
		b.Outcome, b.Error = store.Compile, "as published"
	case f.fault(p) == compileError:
		b.Outcome, b.Error = store.Compile, "injected"
	case f.fault(p) == compilerCrash:
		os.Exit(139)
	}
	return b, nil
}

func (f *fake) Run(_ context.Context, p []int, samples int) (trial.Ran, error) {
	f.say(fmt.Sprintf("run%d", samples), p)
	e := f.space.Entry(p)
	bad := func(o store.Outcome) (trial.Ran, error) { return trial.Ran{Outcome: o, Error: "injected"}, nil }
	switch kind := f.fault(p); {
	case f.lost: // as long as the process lives
		return bad(store.Runtime)
	case e.Status != replay.Correct, kind == launchError:
		return bad(store.Runtime)
	case kind == contextLost:
		f.lost = true
		return bad(store.Runtime)
	case kind == hang:
		time.Sleep(time.Hour)
	case kind == wrongResult:
		return bad(store.Correctness)
	case kind == notANumber:
		return trial.Ran{Outcome: store.Correct, Provenance: bench.Measured}, nil // NaN is no JSON: no sample
	}
	r := trial.Ran{Outcome: store.Correct, Provenance: bench.Measured, Verified: true}
	for range samples {
		r.Samples = append(r.Samples, 1000*f.sample(e, p))
	}
	return r, nil
}

// sample is a configuration's next one. The first launch of all warms up and is left out.
// For a stretch the device is throttled.
func (f *fake) sample(e *replay.Entry, p search.Point) float64 {
	key := fmt.Sprint(p)
	n := f.next[key]
	if n == 0 {
		n = int(hashOf("", p) % 31) // processes that come later go on elsewhere
	}
	f.next[key] = n + 1
	ms := e.Samples[1+n%(len(e.Samples)-1)]
	if f.runs++; f.faults != "" && f.runs > 150 && f.runs < 170 {
		ms *= 1.4
	}
	return ms
}

// child is the command of a device's process.
func child(faults, log string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=device", faultsEnv+"="+faults, logEnv+"="+log)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// logged counts the lines of a device's log from an offset.
func logged(file string, from int64) (lines map[string]int, end int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, 0); err != nil {
		return nil, 0, err
	}
	lines = map[string]int{}
	end = from
	for s := bufio.NewScanner(f); s.Scan(); {
		lines[strings.TrimSpace(s.Text())]++
		end += int64(len(s.Text())) + 1
	}
	return lines, end, nil
}

// truth is a configuration's true time: the median of all samples but the first.
func truth(s *replay.Space, p search.Point) float64 {
	e := s.Entry(p)
	if e.Status != replay.Correct {
		return math.Inf(1)
	}
	return median.Of(e.Samples[1:])
}

// A child whose parent ends right after a request ends too.
func TestChildEndsWithItsInput(t *testing.T) {
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=device")
		cmd.Stdin = strings.NewReader(`{"id":1,"do":"run","point":[0,0,0,0,0,0,0,0,0,0],"samples":1}` + "\n")
		_ = cmd.Run() // with any exit code
		require.NoError(t, ctx.Err())
		cancel()
	}
}
