package tune

import (
	"encoding/json"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/store"
)

// Result is what a run found. As JSON it is what `kgen tune --json` prints.
type Result struct {
	Kernel   string          `json:"kernel"` // the family
	GPU      string          `json:"gpu"`    // its id
	Problem  family.Settings `json:"problem"`
	Space    Space           `json:"space"`
	Compiled int             `json:"compiled"` // configurations with a cubin, from the cache or not
	Failed   int             `json:"failed"`   // configurations tried that came to nothing
	Best     []Best          `json:"best"`     // fastest first; empty if all that were checked are wrong

	// Wrong are the configurations that a check found wrong, which are left out of Best
	// and of the artifacts.
	Wrong []Wrong `json:"wrong,omitempty"`

	// Failures counts those behind Failed by how they ended, and Causes says why, each
	// cause once.
	Failures map[store.Outcome]int `json:"failures"`
	Causes   []explore.Cause       `json:"causes"`

	// Importance is how much each parameter matters among the configurations with a
	// predicted time, of which there are Samples, and Together how much all of them do;
	// null for fewer than explore.FewestTimes.
	Importance []explore.Importance `json:"importance"`
	Together   *float64             `json:"importance_together"`
	Samples    int                  `json:"importance_samples"`

	// Seconds is what each phase took of all processes together, whenever it was done.
	Seconds map[string]float64 `json:"seconds"`

	// LibraryUS is what the fastest library in the measured tables takes for exactly
	// this problem, in microseconds; null where the tables lack it.
	LibraryUS *float64  `json:"library_us"`
	Library   *Library  `json:"library"` // whose, and that it was measured; without LibraryUS it is interpolated
	Next      string    `json:"next"`    // what to do next about the chosen configuration; "" if there is none
	Artifacts Artifacts `json:"artifacts"`

	Removed   space.Counts `json:"-"` // which constraint removed how many
	Toolchain string       `json:"-"` // what compiled, or why nothing did
	Notes     []string     `json:"-"` // what a reader must know, a sentence each
}

// Wrong is a configuration whose program computes something else, or faults.
type Wrong struct {
	Config  space.Config  `json:"config"`
	Outcome store.Outcome `json:"outcome"`
	Fault   string        `json:"fault"`
}

// Space is the size of the search space.
type Space struct {
	Total int64 `json:"total"` // points of the product
	Valid int64 `json:"valid"` // that meet the constraints
}

// Best is one of the best configurations.
type Best struct {
	Config space.Config  `json:"config"`
	TimeUS float64       `json:"time_us"`
	LowUS  *float64      `json:"low_us,omitempty"` // 95 % interval of the median of a measured time
	HighUS *float64      `json:"high_us,omitempty"`
	TFLOPS float64       `json:"tflops"`
	Score  float64       `json:"score"`  // least possible time of the problem, by formula / time
	Limit  roofline.Unit `json:"limit"`  // the unit that binds this configuration: the largest of Limits
	Limits Limits        `json:"limits"` // each unit's time for this configuration's work

	// Terms add up to TimeUS: the unit that takes longest at the rate that long kernels
	// hold, or latency; overlap; waves; launch.
	Terms map[string]float64 `json:"terms"`

	Registers   int `json:"registers"` // 0: nothing compiled it; null in JSON, and so are the spills
	SharedBytes int `json:"shared_bytes"`
	SpillBytes  int `json:"spill_bytes"`
	CTAsPerSM   int `json:"ctas_per_sm"`

	// Instructions counts those of tensor cores and asynchronous copies in the SASS of the
	// longest kernel, by mnemonic: HGMMA, UTMALDG. Empty where it has none, null where
	// nothing compiled it.
	Instructions map[string]int `json:"instructions"`

	Verified   bool             `json:"verified"`
	Provenance bench.Provenance `json:"provenance"` // of the time

	// Estimated says that CTAsPerSM and TimeUS follow from an estimate of the registers.
	Estimated bool `json:"estimated,omitempty"`

	Fault string `json:"-"` // why it could not be checked; empty if Verified
}

// MarshalJSON writes null for what only a compiler knows where there was none.
func (b Best) MarshalJSON() ([]byte, error) {
	type plain Best
	out := struct {
		plain
		Registers  *int `json:"registers"`
		SpillBytes *int `json:"spill_bytes"`
	}{plain: plain(b)}
	if b.Registers > 0 {
		out.Registers, out.SpillBytes = &b.Registers, &b.SpillBytes
	}
	return json.Marshal(out)
}

// Limits are times in microseconds by unit.
type Limits map[roofline.Unit]float64

// Artifacts are absolute paths of files that exist; empty where there is none.
type Artifacts struct {
	CUDA     string `json:"cuda"`
	PTX      string `json:"ptx"`
	Cubin    string `json:"cubin"`
	Launch   string `json:"launch"`   // how to launch them: docs/launch.md
	Roofline string `json:"roofline"` // SVG
	Progress string `json:"progress"` // SVG: the times in the order in which they were tried
	Store    string `json:"store"`
}

// MarshalJSON writes null where there is no file.
func (a Artifacts) MarshalJSON() ([]byte, error) {
	path := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return json.Marshal(struct {
		CUDA     *string `json:"cuda"`
		PTX      *string `json:"ptx"`
		Cubin    *string `json:"cubin"`
		Launch   *string `json:"launch"`
		Roofline *string `json:"roofline"`
		Progress *string `json:"progress"`
		Store    *string `json:"store"`
	}{path(a.CUDA), path(a.PTX), path(a.Cubin), path(a.Launch), path(a.Roofline), path(a.Progress), path(a.Store)})
}
