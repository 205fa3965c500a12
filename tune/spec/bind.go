package spec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Bound is a description for one GPU.
type Bound struct {
	*Spec
	Space *space.Bound
	GPU   *target.GPU

	kernel    launch
	reference *launch
	arguments []template
}

// launch is a launch's formulas; nil is 1, or 0 bytes.
type launch struct {
	grid, block [3]*space.Formula
	shared      *space.Formula
}

// Bind gives the names values: the sizes, and the GPU's limits as family.Env calls them.
// It adds the constraints that every launch has. It refuses a space without a
// configuration.
func (s *Spec) Bind(g *target.GPU) (*Bound, error) { return s.BindContext(context.Background(), g) }

// BindContext is Bind, which of a large space takes long, until ctx ends. So do all
// traversals of the space.
func (s *Spec) BindContext(ctx context.Context, g *target.GPU) (*Bound, error) {
	env := family.Env(g)
	for _, name := range slices.Sorted(maps.Keys(s.Sizes)) {
		if _, taken := env[name]; taken {
			return nil, fmt.Errorf("size %s has the name of a limit of the GPU: rename it", name)
		}
		env[name] = s.Sizes[name]
	}
	if err := s.checkMacros(); err != nil {
		return nil, err
	}
	limited := &space.Space{Params: s.Space.Params, Lets: s.Space.Lets, Constraints: slices.Concat(s.Space.Constraints, s.limits())}
	b := &Bound{Spec: s, GPU: g}
	var err error
	if b.Space, err = limited.Bind(env); err != nil {
		return nil, err
	}
	b.Space = b.Space.Until(ctx)
	if b.kernel, err = b.compile(&s.Launch); err != nil {
		return nil, err
	}
	if s.Reference != nil {
		l, err := b.compile(&s.Reference.Launch)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		if !l.constant() {
			return nil, errors.New("reference: its launch reads a parameter: want sizes alone")
		}
		b.reference = &l
	}
	for i, text := range s.Arguments {
		t, err := b.template(text)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		b.arguments = append(b.arguments, t)
	}
	if _, ok := b.Space.Next(nil); !ok {
		counts := b.Space.Count()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no configuration is left: %s", counts)
	}
	return b, nil
}

// limits are what a GPU allows of the kernel's launch.
func (s *Spec) limits() []space.Constraint {
	var threads []string
	for _, e := range s.Launch.Block {
		threads = append(threads, "("+e+")")
	}
	if len(threads) == 0 {
		return nil // a T1 file whose launch cannot be read
	}
	out := []space.Constraint{{Name: "threads of a block", Expr: strings.Join(threads, "*") + " <= threads"}}
	if len(threads) == 3 {
		out = append(out, space.Constraint{Name: "depth of a block", Expr: threads[2] + " <= 64"})
	}
	if s.Launch.Shared != "" {
		out = append(out, space.Constraint{Name: "shared memory of a block", Expr: "(" + s.Launch.Shared + ") <= shared"})
	}
	return out
}

func (b *Bound) compile(l *Launch) (out launch, err error) {
	for _, e := range []struct {
		name string
		from []string
		to   *[3]*space.Formula
	}{{"grid", l.Grid, &out.grid}, {"block", l.Block, &out.block}} {
		for i, text := range e.from {
			if e.to[i], err = b.Space.Formula(text); err != nil {
				return out, fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	if l.Shared != "" {
		if out.shared, err = b.Space.Formula(l.Shared); err != nil {
			return out, fmt.Errorf("shared: %w", err)
		}
	}
	return out, nil
}

func (l *launch) constant() bool {
	for _, f := range slices.Concat(l.grid[:], l.block[:], []*space.Formula{l.shared}) {
		if f != nil && !f.Constant() {
			return false
		}
	}
	return true
}

// at is the launch of a configuration.
func (l *launch) at(index []int) (out bench.CaseLaunch, err error) {
	for _, e := range []struct {
		name string
		from [3]*space.Formula
		to   *[3]uint32
	}{{"grid", l.grid, &out.Grid}, {"block", l.block, &out.Block}} {
		for i, f := range e.from {
			e.to[i] = 1
			if f == nil {
				continue
			}
			v, err := f.At(index)
			if err != nil {
				return out, fmt.Errorf("%s: %w", e.name, err)
			}
			if v < 1 || v > math.MaxInt32 {
				return out, fmt.Errorf("%s: %d in dimension %d: want 1 to %d", e.name, v, i, math.MaxInt32)
			}
			e.to[i] = uint32(v)
		}
	}
	if l.shared != nil {
		if out.SharedBytes, err = l.shared.At(index); err != nil {
			return out, fmt.Errorf("shared: %w", err)
		}
	}
	return out, out.Validate()
}

// Launch is the kernel's launch in a configuration, without its arguments. The error
// says what no GPU can launch.
func (b *Bound) Launch(index []int) (bench.CaseLaunch, error) { return b.kernel.at(index) }

// ReferenceLaunch is the reference's launch; there must be one.
func (b *Bound) ReferenceLaunch() (bench.CaseLaunch, error) { return b.reference.at(b.AnyPoint()) }

// AnyPoint stands for the configuration in formulas that read no parameter.
func (b *Bound) AnyPoint() []int { return make([]int, len(b.Spec.Space.Params)) }

// template is an argument's text around its formulas.
type template struct {
	parts    []string // one more than formulas
	formulas []*space.Formula
}

// template reads text with {expressions}.
func (b *Bound) template(text string) (t template, err error) {
	for {
		before, rest, ok := strings.Cut(text, "{")
		t.parts = append(t.parts, before)
		if !ok {
			return t, nil
		}
		inner, after, ok := strings.Cut(rest, "}")
		if !ok {
			return t, fmt.Errorf("%q: a { without its }", text)
		}
		f, err := b.Space.Formula(inner)
		if err != nil {
			return t, err
		}
		t.formulas = append(t.formulas, f)
		text = after
	}
}

func (t *template) at(index []int) (string, error) {
	var out strings.Builder
	for i, part := range t.parts {
		out.WriteString(part)
		if i < len(t.formulas) {
			v, err := t.formulas[i].At(index)
			if err != nil {
				return "", err
			}
			out.WriteString(strconv.FormatInt(v, 10))
		}
	}
	return out.String(), nil
}

// Values are the arguments of a configuration. Buffers are the same in all: only values
// may depend on parameters, which Buffers holds to.
func (b *Bound) Values(index []int, buffers []*bench.Argument) ([]bench.CaseArg, error) {
	var out []bench.CaseArg
	n := 0
	for i := range b.arguments {
		if buffers[i].Buffer != nil {
			out = append(out, bench.CaseArg{Buffer: n, Kind: "buffer"})
			n++
			continue
		}
		text, err := b.arguments[i].at(index)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		a, err := bench.ParseArgument(text, i, 0, b.Dir)
		if err != nil {
			return nil, err
		}
		out = append(out, a.Value)
	}
	return out, nil
}

// Buffers makes the arguments with their contents, which follow from a seed.
func (b *Bound) Buffers(seed uint64) ([]*bench.Argument, error) {
	var out []*bench.Argument
	for i, t := range b.arguments {
		text, err := t.at(b.AnyPoint())
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		for _, file := range bench.ArgumentFiles(text) {
			if err := cmp.Or(within(file), b.unlinked(file)); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		a, err := bench.ParseArgument(text, i, seed, b.Dir)
		if err != nil {
			return nil, err
		}
		if a.Buffer != nil && slices.ContainsFunc(t.formulas, func(f *space.Formula) bool { return !f.Constant() }) {
			return nil, fmt.Errorf("argument %d: the buffer %q reads a parameter: want sizes alone, so that all configurations have the same", i+1, b.Spec.Arguments[i])
		}
		if a.Buffer != nil && a.Buffer.Want != nil && b.Reference != nil {
			return nil, fmt.Errorf("argument %d: %q wants a file, and there is a reference: want one of both", i+1, b.Spec.Arguments[i])
		}
		out = append(out, a)
	}
	return out, nil
}

// ArrayFiles are the files that the arguments read, as they are named.
func (b *Bound) ArrayFiles() ([]string, error) {
	var out []string
	for i, t := range b.arguments {
		text, err := t.at(b.AnyPoint())
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out = append(out, bench.ArgumentFiles(text)...)
	}
	return out, nil
}

// First is the default configuration's point; nil if there is none.
func (b *Bound) First() ([]int, error) {
	if len(b.Default) == 0 {
		return nil, nil
	}
	c, err := b.Space.Space().Parse(strings.Join(b.Default, " "))
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	if err := b.Space.Check(c); err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	index, ok := b.Space.Index(c)
	if !ok {
		return nil, fmt.Errorf("default: %s is not one that the search tries", c)
	}
	return index, nil
}
