package exchange

import (
	"fmt"
	"math"

	"github.com/kgen-dev/kgen/tune/store"
)

// Comparison is what two runs say of the same configurations. Ratios are the second's
// time over the first's.
type Comparison struct {
	A         Side     `json:"a"`
	B         Side     `json:"b"`
	Common    int      `json:"common"` // configurations in both
	Timed     int      `json:"timed"`  // of those, with a time in both
	Faster    int      `json:"faster"` // of those, in the second run
	Slower    int      `json:"slower"`
	BestRatio *float64 `json:"best_ratio"` // of the two best; null without both, or with Common 0
	MeanRatio *float64 `json:"mean_ratio"` // geometric, of Timed; null without any
	// Incomparable says why the times of one run are not those of the other's kind; then
	// there are no ratios, and none is faster or slower.
	Incomparable string   `json:"incomparable,omitempty"`
	Changed      []Change `json:"changed"` // configurations that ended otherwise
}

// Side is one of two runs.
type Side struct {
	Run            int64    `json:"run"`
	Kernel         string   `json:"kernel"`
	GPU            string   `json:"gpu"`
	Configurations int      `json:"configurations"`
	BestUS         *float64 `json:"best_us"`
	BestConfig     string   `json:"best_config,omitempty"`
	Provenance     string   `json:"provenance,omitempty"`
}

// Change is a configuration that ended otherwise in the second run.
type Change struct {
	Config string        `json:"config"`
	A      store.Outcome `json:"a"`
	B      store.Outcome `json:"b"`
}

// Compare sets two runs beside each other. Of each configuration the newest evaluation
// of a run counts. Runs without an evaluation are refused.
func Compare(a, b *Recorded) (*Comparison, error) {
	first, err := tableOf([]Recorded{*a})
	if err != nil {
		return nil, err
	}
	second, err := tableOf([]Recorded{*b})
	if err != nil {
		return nil, err
	}
	c := &Comparison{A: first.side(), B: second.side(), Changed: []Change{}}
	if a, b := first.provenance, second.provenance; a != 0 && b != 0 && a != b {
		c.Incomparable = fmt.Sprintf("the first run's times are %s, the second's %s: a ratio of both would say nothing", a, b)
	}
	before := map[string]*store.Evaluation{}
	for _, e := range first.entries {
		before[e.eval.Config] = e.eval
	}
	logs := 0.0
	for _, e := range second.entries {
		old, ok := before[e.eval.Config]
		if !ok {
			continue
		}
		c.Common++
		if old.Outcome.Timed() != e.eval.Outcome.Timed() || !old.Outcome.Timed() && old.Outcome != e.eval.Outcome {
			c.Changed = append(c.Changed, Change{e.eval.Config, old.Outcome, e.eval.Outcome})
			continue
		}
		if !old.Outcome.Timed() {
			continue
		}
		c.Timed++
		if c.Incomparable != "" {
			continue
		}
		logs += math.Log(e.eval.TimeUS / old.TimeUS)
		switch {
		case e.eval.TimeUS < old.TimeUS:
			c.Faster++
		case e.eval.TimeUS > old.TimeUS:
			c.Slower++
		}
	}
	if c.Incomparable != "" {
		return c, nil
	}
	if c.Common > 0 && c.A.BestUS != nil && c.B.BestUS != nil {
		ratio := *c.B.BestUS / *c.A.BestUS
		c.BestRatio = &ratio
	}
	if c.Timed > 0 {
		mean := math.Exp(logs / float64(c.Timed))
		c.MeanRatio = &mean
	}
	return c, nil
}

func (t *table) side() Side {
	s := Side{Run: t.run.ID, Kernel: t.run.Family, GPU: t.run.GPU, Configurations: len(t.entries)}
	for _, e := range t.entries {
		if v := e.eval; v.Outcome.Timed() && (s.BestUS == nil || v.TimeUS < *s.BestUS) {
			s.BestUS, s.BestConfig, s.Provenance = &v.TimeUS, v.Config, v.Provenance.String()
		}
	}
	return s
}
