// Package irtest holds what tests of the tile IR and of what is below it share:
// programs of testdata/tile/run with their arguments, and random programs.
package irtest

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/ir/eval"
)

// Example is a .tile file of testdata/tile/run: a program, its arguments, and what
// it must give. testdata/tile/README.md describes the form.
type Example struct {
	Prog  *ir.Program
	Fails string // part of the error it must end with; empty: it must give Want

	given, want map[string][]string // words after "arg NAME" and "want NAME"
}

var (
	directive = regexp.MustCompile(`(?m)^; (arg|want) (\w+) (.*)$`)
	failure   = regexp.MustCompile(`(?m)^; fails (.*)$`)
)

// ReadExample reads a file.
func ReadExample(file string) (*Example, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	prog, err := ir.Parse(file, src)
	if err != nil {
		return nil, err
	}
	e := &Example{Prog: prog, given: map[string][]string{}, want: map[string][]string{}}
	for _, m := range directive.FindAllStringSubmatch(string(src), -1) {
		to := e.given
		if m[1] == "want" {
			to = e.want
		}
		to[m[2]] = strings.Fields(m[3])
	}
	if m := failure.FindStringSubmatch(string(src)); m != nil {
		e.Fails = m[1]
	}
	if len(e.want) > 0 == (e.Fails != "") {
		return nil, fmt.Errorf("%s: want results or a failure", file)
	}
	return e, nil
}

// Args makes fresh arguments; what is not given starts poisoned.
func (e *Example) Args() ([]eval.Arg, error) {
	var out []eval.Arg
	for _, p := range e.Prog.Params {
		a, err := e.arg(p)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", p.Name, err)
		}
		out = append(out, a)
	}
	return out, nil
}

func (e *Example) arg(p *ir.Value) (eval.Arg, error) {
	words := e.given[p.Name]
	if p.Type.Kind != ir.View {
		if len(words) != 1 {
			return eval.Arg{}, fmt.Errorf("%d words: want a number", len(words))
		}
		return number(p.Type.Elem, words[0])
	}
	shape := words
	if words == nil {
		shape = e.want[p.Name]
	}
	if shape == nil {
		shape = []string{"[8]"} // of the ring examples that fail
	}
	t, err := newTensor(p.Type.Elem, shape[0])
	if err == nil && words != nil {
		err = setNumbers(t, words[1:])
	}
	return eval.View(t), err
}

// Want is what the parameter called name must hold in the end; nil: anything.
func (e *Example) Want(p *ir.Value) (*eval.Tensor, error) {
	words := e.want[p.Name]
	if words == nil {
		return nil, nil
	}
	t, err := newTensor(p.Type.Elem, words[0])
	if err == nil {
		err = setNumbers(t, words[1:])
	}
	return t, err
}

func number(e ir.Elem, word string) (eval.Arg, error) {
	if e.IsFloat() {
		v, err := strconv.ParseFloat(word, 64)
		return eval.Float(v), err
	}
	v, err := strconv.ParseInt(word, 10, 64)
	return eval.Int(v), err
}

// newTensor reads [2x3] or, with strides, [2x3@8,1]; it comes poisoned.
func newTensor(e ir.Elem, text string) (*eval.Tensor, error) {
	sizes, strides, strided := strings.Cut(strings.Trim(text, "[]"), "@")
	shape, err := integers(strings.Split(sizes, "x"))
	if err != nil {
		return nil, err
	}
	t := eval.NewTensor(e, shape...)
	if strided {
		if t.Strides, err = integers(strings.Split(strides, ",")); err != nil {
			return nil, err
		}
		t.Data = make([]byte, 8*shape[0]*t.Strides[0])
	}
	t.Poison()
	return t, nil
}

func integers(words []string) ([]int, error) {
	out := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// setNumbers writes the elements; _ leaves one as it is.
func setNumbers(t *eval.Tensor, words []string) error {
	if len(words) != t.Len() {
		return fmt.Errorf("%d numbers: want %d", len(words), t.Len())
	}
	for i, w := range words {
		if w == "_" {
			continue
		}
		if t.Elem == ir.I64 {
			v, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return err
			}
			for b := range 8 {
				t.Data[8*i+b] = byte(uint64(v) >> (8 * b))
			}
			continue
		}
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return err
		}
		t.SetFloat(i, v)
	}
	return nil
}
