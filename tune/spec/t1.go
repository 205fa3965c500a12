package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/kernels/space"
)

// t1 is the input form that BAT and Kernel Tuner read, as far as it says what to tune.
type t1 struct {
	General            struct{ BenchmarkName string }
	ConfigurationSpace struct {
		TuningParameters []t1Param
		Conditions       []struct{ Expression string }
	}
	KernelSpecification struct {
		Language        string
		CompilerOptions []string
		KernelName      string
		KernelFile      string
		GlobalSizeType  string
		LocalSize       map[string]scalar
		GlobalSize      map[string]scalar
		GridDivX        []string
		GridDivY        []string
		GridDivZ        []string
		ProblemSize     []int64
		SharedMemory    json.RawMessage
		Arguments       []t1Argument
	}
}

type t1Param struct {
	Name    string
	Type    string
	Values  json.RawMessage // a list, or Python's in a string
	Default json.RawMessage
}

type t1Argument struct {
	Name       string
	Type       string
	MemoryType string
	MemType    string
	FillType   string
	FillValue  json.RawMessage
	Size       scalar
}

// t1Reader turns a T1 file into a description.
type t1Reader struct {
	text []byte
	in   t1
	out  *Spec
	py   python
}

func parseT1(text []byte) (*Spec, error) {
	r := &t1Reader{text: text, out: &Spec{Space: &space.Space{}, Sizes: space.Env{}}}
	if err := decode(text, &r.in, false); err != nil {
		return nil, err
	}
	k := &r.in.KernelSpecification
	r.out.Name, r.out.Kernel, r.out.Source = r.in.General.BenchmarkName, k.KernelName, k.KernelFile
	for _, o := range k.CompilerOptions {
		r.out.Flags = append(r.out.Flags, strings.Replace(o, "-std=c++11", "-std=c++14", 1)) // the oldest that NVRTC knows
	}
	r.py = python{params: map[string]space.Param{}, sizes: r.out.Sizes}
	for i, n := range k.ProblemSize {
		r.out.Sizes[fmt.Sprintf("ProblemSize_%d", i)] = n
	}
	for _, step := range []func() error{r.params, r.conditions} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	// The space can be searched, if not run, without what follows.
	if err := r.launch(); err != nil {
		r.out.Launch, r.out.Unrunnable = Launch{}, err
	}
	if err := r.arguments(); err != nil {
		r.out.Arguments, r.out.Unrunnable = nil, err
	}
	if err := within(k.KernelFile); err != nil {
		r.out.Unrunnable = fmt.Errorf("KernelFile: %w", err)
	}
	if k.Language != "" && !strings.EqualFold(k.Language, "CUDA") {
		r.out.Unrunnable = fmt.Errorf("the kernel is in %s: want CUDA", k.Language)
	}
	return r.out, nil
}

// at says in which line of the file a piece of it stands.
func (r *t1Reader) at(text string, err error) error {
	quoted, qerr := json.Marshal(text)
	var plain bytes.Buffer // as people write it: < and > as they are
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if qerr == nil && e.Encode(text) == nil {
		quoted = bytes.TrimSpace(plain.Bytes())
	}
	i := bytes.Index(r.text, quoted)
	if i < 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", jsontext.LineAt(r.text, int64(i)), err)
}

func (r *t1Reader) params() error {
	for _, p := range r.in.ConfigurationSpace.TuningParameters {
		param, err := r.param(p)
		if err != nil {
			return r.at(p.Name, fmt.Errorf("parameter %s: %w", p.Name, err))
		}
		r.out.Space.Params = append(r.out.Space.Params, param)
		r.py.params[p.Name] = param
		if text, ok := defaultOf(p.Default); ok {
			r.out.Default = append(r.out.Default, p.Name+"="+text)
		}
	}
	if len(r.out.Space.Params) == 0 {
		return errors.New("no TuningParameters: want one or more")
	}
	return nil
}

func (r *t1Reader) param(p t1Param) (space.Param, error) {
	text := string(p.Values)
	var inString string
	if json.Unmarshal(p.Values, &inString) == nil {
		text = inString
	}
	v, err := (&python{}).parse(text)
	if err != nil || len(v.list) == 0 {
		return space.Param{}, fmt.Errorf("values %s: want a list such as [1, 2, 4]", text)
	}
	if v.list[0].word != "" {
		return words(p.Name, v.list)
	}
	param := space.Param{Name: p.Name}
	for _, e := range v.list {
		n, err := whole(e)
		if err != nil {
			return param, fmt.Errorf("values %s: %w", text, err)
		}
		param.Values = append(param.Values, n)
	}
	return param, nil
}

func words(name string, list []value) (space.Param, error) {
	var all []string
	for _, e := range list {
		w, err := strconv.Unquote(e.word)
		if err != nil {
			return space.Param{}, errors.New("want strings alone, or numbers alone")
		}
		all = append(all, w)
	}
	return space.Words(name, all...), nil
}

func whole(v value) (int, error) {
	switch v.cond {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	n, err := strconv.Atoi(strings.Trim(v.num, "()"))
	if err != nil || v.den != "" {
		return 0, errors.New("want whole numbers, truth values or strings")
	}
	return n, nil
}

// defaultOf is a default's text; some files have it in a list.
func defaultOf(raw json.RawMessage) (string, bool) {
	var list []scalar
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		return string(list[0]), true
	}
	var s scalar
	if len(raw) == 0 || string(raw) == "null" || s.UnmarshalJSON(raw) != nil {
		return "", false
	}
	return string(s), true
}

func (r *t1Reader) conditions() error {
	for _, c := range r.in.ConfigurationSpace.Conditions {
		text, err := r.py.condition(c.Expression)
		if err != nil {
			return r.at(c.Expression, fmt.Errorf("condition %w", err))
		}
		r.out.Space.Constraints = append(r.out.Space.Constraints, space.Constraint{Name: c.Expression, Expr: text})
	}
	return nil
}

// launch takes the grid from the problem's sizes over GridDiv, as Kernel Tuner does, else
// from GlobalSize, which is in threads where it is OpenCL's.
func (r *t1Reader) launch() error {
	k := &r.in.KernelSpecification
	for i, axis := range []string{"X", "Y", "Z"} {
		local, err := r.number(k.LocalSize[axis], "1")
		if err != nil {
			return err
		}
		r.out.Launch.Block = append(r.out.Launch.Block, local)
		grid, err := r.grid(i, axis, local)
		if err != nil {
			return err
		}
		r.out.Launch.Grid = append(r.out.Launch.Grid, grid)
	}
	var shared scalar
	if len(k.SharedMemory) == 0 || string(k.SharedMemory) == "null" || shared.UnmarshalJSON(k.SharedMemory) != nil {
		shared = "0"
	}
	var err error
	r.out.Launch.Shared, err = r.number(shared, "0")
	return err
}

func (r *t1Reader) number(text scalar, none string) (string, error) {
	if text == "" {
		return none, nil
	}
	n, err := r.py.number(string(text))
	if err != nil {
		return "", r.at(string(text), err)
	}
	return n, nil
}

func (r *t1Reader) grid(i int, axis, local string) (string, error) {
	k := &r.in.KernelSpecification
	divisors := [][]string{k.GridDivX, k.GridDivY, k.GridDivZ}[i]
	size := fmt.Sprintf("ProblemSize_%d", i)
	if _, known := r.out.Sizes[size]; known && len(divisors) > 0 {
		product := ""
		for _, d := range divisors {
			n, err := r.number(scalar(d), "1")
			if err != nil {
				return "", err
			}
			product = times(product, "("+n+")")
		}
		return fmt.Sprintf("ceildiv(%s, %s)", size, product), nil
	}
	global, err := r.number(k.GlobalSize[axis], "1")
	if err != nil || !strings.EqualFold(k.GlobalSizeType, "OpenCL") {
		return global, err
	}
	return fmt.Sprintf("ceildiv(%s, %s)", global, local), nil
}

// t1Types are the types of arguments.
var t1Types = map[string]string{
	"float": "f32", "double": "f64", "half": "f16", "int": "i32", "int32": "i32", "uint32": "u32", "unsigned int": "u32",
	"int64": "i64", "uint64": "u64", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "float32": "f32", "float64": "f64", "float16": "f16",
}

func (r *t1Reader) arguments() error {
	for _, a := range r.in.KernelSpecification.Arguments {
		t, ok := t1Types[a.Type]
		switch {
		case !ok:
			r.out.Unrunnable = r.at(a.Name, fmt.Errorf("argument %s is of type %q: want float, int and the like", a.Name, a.Type))
			continue
		case strings.EqualFold(a.MemType, "Constant"):
			r.out.Unrunnable = r.at(a.Name, fmt.Errorf("argument %s lies in constant memory, which cannot be set: want it as an argument", a.Name))
			continue
		}
		var fill scalar
		if n := bytes.TrimSpace(a.FillValue); len(n) > 0 {
			fill = scalar(strings.TrimSuffix(strings.Trim(string(n), `"`), ".0"))
		}
		if strings.EqualFold(a.MemoryType, "Scalar") {
			if fill == "" {
				return r.at(a.Name, fmt.Errorf("argument %s has no FillValue", a.Name))
			}
			r.out.Arguments = append(r.out.Arguments, t+"="+string(fill))
			continue
		}
		size, err := r.number(a.Size, "1")
		if err != nil {
			return fmt.Errorf("argument %s: %w", a.Name, err)
		}
		contents := "random"
		if strings.EqualFold(a.FillType, "Constant") {
			contents = string(fill)
		}
		r.out.Arguments = append(r.out.Arguments, fmt.Sprintf("%s[{%s}]:%s", t, size, contents))
	}
	return nil
}
