// Package trial tries single configurations: compile one, run it, check what it computed,
// and time it or predict its time. It does so in child processes with deadlines, so that
// a configuration that hangs or crashes ends nothing but its own trial.
package trial

import (
	"context"
	"errors"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/store"
)

// Bench tries points of a space. Errors are those after which no configuration could be
// tried; what is wrong with one is in its outcome. Its methods may be called by several
// goroutines.
type Bench interface {
	// Compile makes the program of a point.
	Compile(ctx context.Context, point []int) (Built, error)
	// Run runs the program of a point that was compiled: once to check what it computes,
	// if that was not done before or no times are asked for, and then for each of these.
	// Again instead of a number of times asks for a check over other random contents.
	Run(ctx context.Context, point []int, samples int) (Ran, error)
}

// Again asks Run to check what a point computes once more. Where inputs are random, they
// are others than those of all checks before.
const Again = -1

// ErrMistake says that a description is at fault, so that nothing can be tried.
var ErrMistake = errors.New("a mistake in the description")

// mistake is an error of whoever wrote the description, in its own words.
type mistake struct{ error }

func (mistake) Is(target error) bool { return target == ErrMistake }

func (m mistake) Unwrap() error { return m.error }

// Keeper is a Bench that keeps what came of a point, so that not even a killed process
// loses it, until it hears that it is recorded.
type Keeper interface {
	Recorded(point []int)
}

// Pinner is a Bench with several devices of a kind. From Pin on it runs on one of them
// alone, since what is compared closely must not differ by the device.
type Pinner interface {
	Pin()
}

// Built is what compiling made.
type Built struct {
	Outcome store.Outcome `json:"outcome,omitempty"` // why there is nothing to run; "" if there is
	Error   string        `json:"error,omitempty"`

	Program      string         `json:"program"` // digest of what was compiled
	Same         string         `json:"same"`    // digest of the compiled code and its launch: equal ones need one run
	Cubin        string         `json:"cubin"`   // digest of the compiled code
	Registers    int            `json:"registers"`
	SharedBytes  int            `json:"shared_bytes"`
	SpillBytes   int            `json:"spill_bytes"`
	CTAsPerSM    int            `json:"ctas_per_sm"`
	Instructions map[string]int `json:"instructions,omitempty"`
	Seconds      float64        `json:"seconds"`

	Predicted *Ran `json:"predicted,omitempty"` // its time, where that follows from the code alone
}

// Ran is what running gave.
type Ran struct {
	Outcome store.Outcome `json:"outcome"` // Correct, Predicted, or what is wrong
	Error   string        `json:"error,omitempty"`

	Samples    []float64          `json:"samples,omitempty"` // microseconds, of a device that measures
	TimeUS     float64            `json:"time_us,omitempty"` // predicted
	Provenance bench.Provenance   `json:"provenance,omitzero"`
	Limits     map[string]float64 `json:"limits,omitempty"` // by unit, microseconds
	Terms      map[string]float64 `json:"terms,omitempty"`  // of a prediction
	Verified   bool               `json:"verified"`         // its results were compared with the reference's
	Seconds    float64            `json:"seconds"`
}

// failed is a run that ended badly.
func failed(o store.Outcome, err error) Ran { return Ran{Outcome: o, Error: err.Error()} }
