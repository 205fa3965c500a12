package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/kernels/space"
)

// file is kgen's own form; docs/space.md describes it.
type file struct {
	Name        string             `json:"name"`
	Doc         string             `json:"doc"`
	Source      string             `json:"source"`
	Kernel      string             `json:"kernel"`
	Flags       []string           `json:"flags"`
	Sizes       map[string]int64   `json:"sizes"`
	Parameters  []fileParam        `json:"parameters"`
	Let         lets               `json:"let"`
	Constraints []fileConstraint   `json:"constraints"`
	Default     map[string]scalar  `json:"default"`
	Arguments   []string           `json:"arguments"`
	Tolerance   numcheck.Tolerance `json:"tolerance"`
	Reference   *fileReference     `json:"reference"`
	Blocks      int                `json:"blocks"`
	fileLaunch
}

type fileLaunch struct {
	Grid   extents `json:"grid"`
	Block  extents `json:"block"`
	Shared expr    `json:"shared"`
}

type fileReference struct {
	Source  string            `json:"source"`
	Kernel  string            `json:"kernel"`
	Defines map[string]scalar `json:"defines"`
	fileLaunch
}

// fileParam is a parameter: its values, the powers of two between two of them, a range
// with or without a step, or words.
type fileParam struct {
	Name   string   `json:"name"`
	Doc    string   `json:"doc"`
	Values []int    `json:"values"`
	Powers []int    `json:"powers"`
	Range  []int    `json:"range"`
	Words  []string `json:"words"`
}

// fileConstraint is an expression, or an object with a name for it.
type fileConstraint struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
	Doc  string `json:"doc"`
}

func (c *fileConstraint) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &c.Expr) == nil {
		return nil
	}
	type plain fileConstraint
	return decode(text, (*plain)(c), true)
}

// expr is an expression or a number.
type expr string

func (e *expr) UnmarshalJSON(text []byte) error {
	var s scalar
	if err := s.UnmarshalJSON(text); err != nil {
		return err
	}
	*e = expr(s)
	return nil
}

// extents are one to three expressions, or one alone.
type extents []string

func (e *extents) UnmarshalJSON(text []byte) error {
	var all []expr
	if bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
	} else {
		all = make([]expr, 1)
		if err := all[0].UnmarshalJSON(text); err != nil {
			return err
		}
	}
	for _, x := range all {
		*e = append(*e, string(x))
	}
	return nil
}

// scalar is a string, or the text of a whole number.
type scalar string

func (s *scalar) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		*s = scalar(word)
		return nil
	}
	if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
		return fmt.Errorf("%s: want a whole number or a string", text)
	}
	*s = scalar(text)
	return nil
}

// lets are the members of an object, in order.
type lets []space.Let

func (l *lets) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf(`let %s: want an object of expressions by name`, text)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var e expr
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("let %v: %w", key, err)
		}
		*l = append(*l, space.Let{Name: key.(string), Expr: string(e)})
	}
	return nil
}

func parseOwn(text []byte) (*Spec, error) {
	var f file
	if err := decode(text, &f, true); err != nil {
		return nil, err
	}
	switch {
	case f.Source == "":
		return nil, errors.New(`no "source": want the name of a file of CUDA C`)
	case f.Kernel == "":
		return nil, errors.New(`no "kernel": want the name of a kernel of the source`)
	case len(f.Parameters) == 0:
		return nil, errors.New(`no "parameters": want a list of {"name": ..., "values": [...]}`)
	case f.Blocks < 0:
		return nil, fmt.Errorf("blocks %d: want how many of the grid's the virtual machine runs, or 0 for all", f.Blocks)
	}
	if err := errors.Join(within(f.Source), f.Tolerance.Validate()); err != nil {
		return nil, err
	}
	s := &Spec{
		Name: f.Name, Source: f.Source, Kernel: f.Kernel, Flags: f.Flags, Sizes: space.Env(f.Sizes),
		Arguments: f.Arguments, Tolerance: f.Tolerance, Blocks: f.Blocks,
	}
	var err error
	if s.Space, err = f.space(); err != nil {
		return nil, err
	}
	if s.Launch, err = f.launch(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Default)) {
		s.Default = append(s.Default, name+"="+string(f.Default[name]))
	}
	if f.Reference != nil {
		if s.Reference, err = f.Reference.reference(&f); err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		s.Reference.Defines = append(s.Reference.Defines, wordDefines(s.Space.Params, s.Reference.Defines)...)
	}
	return s, nil
}

func (f *file) space() (*space.Space, error) {
	s := &space.Space{Lets: f.Let}
	for i, p := range f.Parameters {
		param, err := p.param()
		if err != nil {
			return nil, fmt.Errorf("parameter %d (%s): %w", i+1, p.Name, err)
		}
		s.Params = append(s.Params, param)
	}
	for _, c := range f.Constraints {
		if c.Name == "" {
			c.Name = c.Expr
		}
		s.Constraints = append(s.Constraints, space.Constraint{Name: c.Name, Expr: c.Expr, Doc: c.Doc})
	}
	return s, nil
}

// maxValues bounds the values of one parameter.
const maxValues = 1 << 20

func (p *fileParam) param() (space.Param, error) {
	forms := 0
	for _, given := range []bool{p.Values != nil, p.Powers != nil, p.Range != nil, p.Words != nil} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		return space.Param{}, errors.New(`want one of "values", "powers", "range" and "words"`)
	}
	if p.Words != nil {
		param := space.Words(p.Name, p.Words...)
		param.Doc = p.Doc
		return param, nil
	}
	param := space.Param{Name: p.Name, Values: p.Values, Doc: p.Doc}
	switch {
	case p.Powers != nil:
		if len(p.Powers) != 2 || !powerOfTwo(p.Powers[0]) || !powerOfTwo(p.Powers[1]) || p.Powers[0] > p.Powers[1] {
			return param, fmt.Errorf("powers %v: want the first and the last power of two, such as [16, 256]", p.Powers)
		}
		for v := p.Powers[0]; v <= p.Powers[1] && v > 0; v *= 2 {
			param.Values = append(param.Values, v)
		}
	case p.Range != nil:
		step := 1
		if len(p.Range) == 3 {
			step = p.Range[2]
		}
		if len(p.Range) < 2 || len(p.Range) > 3 || step < 1 || p.Range[0] > p.Range[1] || float64(p.Range[1])-float64(p.Range[0]) > float64(step)*maxValues {
			return param, fmt.Errorf("range %v: want the first, the last and maybe a step, such as [1, 16] or [0, 64, 8], of at most %d values", p.Range, maxValues)
		}
		for v := p.Range[0]; v <= p.Range[1]; v += step {
			param.Values = append(param.Values, v)
			if v > math.MaxInt-step {
				break
			}
		}
	}
	return param, nil
}

func powerOfTwo(v int) bool { return v > 0 && v&(v-1) == 0 }

func (f *fileLaunch) launch() (Launch, error) {
	l := Launch{Grid: f.Grid, Block: f.Block, Shared: string(f.Shared)}
	for _, e := range []struct {
		name string
		of   []string
	}{{"grid", l.Grid}, {"block", l.Block}} {
		if len(e.of) < 1 || len(e.of) > 3 {
			return l, fmt.Errorf(`%q of %d expressions: want one to three, such as ["ceildiv(n, tile)", "1"]`, e.name, len(e.of))
		}
	}
	return l, nil
}

// reference fills in from the kernel itself what is not said.
func (r *fileReference) reference(f *file) (*Reference, error) {
	if r.Source == "" {
		r.Source = f.Source
	}
	if r.Kernel == "" {
		r.Kernel = f.Kernel
	}
	if r.Source == f.Source && r.Kernel == f.Kernel && len(r.Defines) == 0 {
		return nil, errors.New(`the kernel itself: want another "kernel" or "source", or "defines"`)
	}
	l, err := r.launch()
	if err := errors.Join(within(r.Source), err); err != nil {
		return nil, err
	}
	out := &Reference{Source: r.Source, Kernel: r.Kernel, Launch: l}
	for _, name := range slices.Sorted(maps.Keys(r.Defines)) {
		out.Defines = append(out.Defines, name+"="+string(r.Defines[name]))
	}
	return out, nil
}
