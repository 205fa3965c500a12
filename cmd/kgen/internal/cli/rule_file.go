package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/tune/dispatch"
	"github.com/kgen-dev/kgen/tune/table"
)

// Limits of a file of --rule: mostShapes shapes take less, and no rule is worth having
// that makes a shape so much slower.
const (
	maxRuleBytes = 4 << 20
	mostRegret   = 1000
)

// sizeRule is a shapesReport as it is read again. What it says of itself must follow from
// the rule and the shapes that it holds, for a package's documentation says it too.
type sizeRule struct {
	Kernel      string         `json:"kernel"`
	GPU         string         `json:"gpu"`
	Shapes      []ruleShape    `json:"shapes"`
	Rule        *dispatch.Rule `json:"rule"`
	WorstRegret *float64       `json:"worst_regret"`
	HeldOut     *float64       `json:"worst_held_out_regret"`
	Refused     int            `json:"held_out_refused"`
	Provenance  string         `json:"provenance"`
	File        string         `json:"file"`

	file     string
	used     bool
	problems []family.Problem // of the shapes
}

type ruleShape struct {
	Problem map[string]json.RawMessage `json:"problem"`
	Best    json.RawMessage            `json:"best"`
	BestUS  float64                    `json:"best_us"`
	Chosen  string                     `json:"chosen"`
	Regret  *float64                   `json:"regret"`
	HeldOut *float64                   `json:"held_out_regret"`
}

// readRules reads what kgen tune --shapes wrote.
func readRules(files []string) ([]*sizeRule, error) {
	var out []*sizeRule
	for _, file := range files {
		r, err := readRule(file)
		if err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.Kernel == r.Kernel && o.GPU == r.GPU {
				return nil, usagef("--rule %s: %s on %s has the rule of %s", file, r.Kernel, r.GPU, o.file)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func readRule(file string) (*sizeRule, error) {
	text, err := userfile.Read(file, maxRuleBytes)
	if err != nil {
		return nil, usagef("--rule %s: %w", file, reason(err))
	}
	if _, _, wrong := jsontext.Members(text); wrong != nil {
		return nil, usagef("--rule %s: line %w", file, wrong)
	}
	r := &sizeRule{file: file}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, usagef("--rule %s: line %w", file, jsontext.Locate(text, err))
	}
	if path, err := r.check(); err != nil {
		return nil, usagef("--rule %s: line %d: %s: %w", file, jsontext.LineOf(text, path), path, err)
	}
	return r, nil
}

// check says what is wrong with a file's content, and at which key.
func (r *sizeRule) check() (path string, err error) {
	f, err := kernelFamily(r.Kernel)
	if err != nil {
		return "kernel", err
	}
	gpu, err := target.Lookup(r.GPU)
	if err != nil {
		return "gpu", err
	}
	if r.Provenance != "predicted" && r.Provenance != "measured" {
		return "provenance", fmt.Errorf("%q: want predicted or measured", r.Provenance)
	}
	if path, err := r.Rule.Check(); err != nil {
		return strings.TrimSuffix("rule."+path, "."), err
	}
	if len(r.Shapes) == 0 || len(r.Shapes) > mostShapes {
		return "shapes", fmt.Errorf("%d, or missing: want the 1 to %d that the rule was fitted to", len(r.Shapes), mostShapes)
	}
	return r.checkShapes(f, gpu)
}

// checkShapes holds what is said of every shape to the rule, and what is said of the rule
// to the shapes.
func (r *sizeRule) checkShapes(f *family.Family, gpu *target.GPU) (path string, err error) {
	worst, heldOut := 0.0, -1.0
	var taken []*dispatch.Rule
	for i, s := range r.Shapes {
		at := func(key string) string { return fmt.Sprintf("shapes.%d.%s", i, key) }
		p, err := f.Problem(family.FlagTexts(s.Problem), gpu)
		if err != nil {
			return at("problem"), err
		}
		r.problems = append(r.problems, p)
		sizes, _ := table.Split(f, p.Settings())
		known := knownSizes(f, sizes)
		for _, name := range r.Rule.Sizes() {
			if _, ok := known[name]; !ok {
				return "rule", fmt.Errorf("it asks for %s, which callers of %s do not give", name, f.Name)
			}
		}
		leaf := r.Rule.Leaf(known)
		taken = append(taken, leaf)
		switch {
		case s.Chosen != leaf.Config:
			return at("chosen"), fmt.Errorf("%q: the rule takes %q there", s.Chosen, leaf.Config)
		case !(s.BestUS > 0):
			return at("best_us"), fmt.Errorf("%g, or missing: want a time above 0", s.BestUS)
		case s.Regret == nil || !(*s.Regret >= 0 && *s.Regret <= mostRegret):
			return at("regret"), fmt.Errorf("%s: want 0 to %d", orMissing(s.Regret), mostRegret)
		case s.HeldOut != nil && !(*s.HeldOut >= 0 && *s.HeldOut <= mostRegret):
			return at("held_out_regret"), fmt.Errorf("%g: want 0 to %d, or null", *s.HeldOut, mostRegret)
		}
		if s.HeldOut != nil {
			heldOut = max(heldOut, *s.HeldOut)
		}
		worst = max(worst, *s.Regret)
	}
	const rounding = 1e-9
	if r.WorstRegret == nil || !(math.Abs(*r.WorstRegret-worst) <= rounding) {
		return "worst_regret", fmt.Errorf("%s: want %g, the worst of its shapes", orMissing(r.WorstRegret), worst)
	}
	if r.HeldOut != nil && !(math.Abs(*r.HeldOut-heldOut) <= rounding) {
		return "worst_held_out_regret", fmt.Errorf("%g: want the worst of its shapes", *r.HeldOut)
	}
	for i, leaf := range r.Rule.Leaves() {
		if !slices.Contains(taken, leaf) {
			return "rule", fmt.Errorf("no shape takes leaf %d (%s): want all that it was fitted to", i+1, leaf.Config)
		}
	}
	return "", nil
}

func orMissing(v *float64) string {
	if v == nil {
		return "missing"
	}
	return fmt.Sprint(*v)
}
