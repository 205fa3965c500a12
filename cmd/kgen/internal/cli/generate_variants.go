package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/ir"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
)

// family compiles a family for the GPUs.
func (g *generator) family(f *family.Family, given map[string]string, gpus []*target.GPU) (*gopkg.Family, error) {
	out := &gopkg.Family{Prefix: f.Prefix, Doc: f.Doc}
	for _, s := range f.Sizes {
		size := gopkg.Size(s)
		size.Max = cmp.Or(size.Max, family.MaxSize)
		out.Sizes = append(out.Sizes, size)
	}
	others := append([]map[string]string{nil}, f.Others...)
	for i, other := range others {
		flags := maps.Clone(given)
		if flags == nil {
			flags = map[string]string{}
		}
		maps.Copy(flags, other)
		for _, gpu := range gpus {
			problem, err := f.AnySize(flags, gpu)
			if err != nil {
				return nil, usage(fmt.Errorf("%s: %w", f.Name, err))
			}
			fixed := fixedOptions(f, problem)
			if out.Scalars == nil {
				out.Fixed, out.Scalars, out.Counts = fixed, scalars(problem), counted(problem)
			}
			if fixed != out.Fixed {
				return nil, usagef("%s: %s for %s and %s for %s: want the same, set them as %s:dtype=f16", f.Name, out.Fixed, gpus[0].ID, fixed, gpu.ID, f.Name)
			}
			variants, err := g.variants(f, problem, gpu, i == 0)
			if err != nil {
				return nil, err
			}
			for j := range variants {
				v := &variants[j]
				v.Name = variantName(f, gpu, i, v)
				if v.Dispatch != nil || !slices.ContainsFunc(out.Variants, func(w gopkg.Variant) bool { return w.GPU == v.GPU && w.PTX == v.PTX }) {
					out.Variants = append(out.Variants, *v)
				}
			}
		}
	}
	return out, nil
}

func variantName(f *family.Family, gpu *target.GPU, n int, v *gopkg.Variant) string {
	name := strings.ToLower(f.Prefix) + "_" + strings.ReplaceAll(gpu.ID, "-", "_")
	switch arch := v.Compiled.Module.Arch; {
	case strings.HasSuffix(arch, "a"):
		name += "_" + strings.ReplaceAll(arch, "_", "")
	case v.Compiled.TensorMaps():
		name += "_maps"
	}
	if v.Compiled.Launched != v.Compiled.Program {
		name += "_prologue"
	}
	if v.Dispatch != nil {
		name += "_leaf" + strconv.Itoa(v.Leaf)
	}
	if n > 0 {
		name += "_" + strconv.Itoa(n+1)
	}
	return name
}

// fixedOptions are the settings that are no size: those that no other problem of the
// package changes and that are not numbers of things, and quotients of those.
func fixedOptions(f *family.Family, p family.Problem) string {
	var fixed []string
	for _, s := range p.Settings() {
		flag := slices.IndexFunc(f.Flags, func(x family.Flag) bool { return x.Name == s.Name })
		if flag >= 0 && !f.Flags[flag].IsSize() {
			fixed = append(fixed, s.Name+"="+s.Value)
		}
	}
	for _, r := range f.Ratios {
		x, y := p.Settings().Int(r[0]), p.Settings().Int(r[1])
		fixed = append(fixed, fmt.Sprintf("%s/%s=%d", r[0], r[1], x/y))
	}
	return strings.Join(fixed, " ")
}

// scalars describes the arguments that are numbers. Fixed options alone decide them.
func scalars(p family.Problem) map[string]gopkg.Scalar {
	out := map[string]gopkg.Scalar{}
	for _, a := range p.Args() {
		if a.IsScalar() {
			out[a.Name] = gopkg.Scalar{Doc: a.Doc, Int: a.Int, Float: a.Float, From0: a.From0, Unread: a.Unread, Dropout: a.Dropout}
		}
	}
	return out
}

// counted lists the arguments that hold numbers which programs count with.
func counted(p family.Problem) []gopkg.Count {
	var out []gopkg.Count
	for _, a := range p.Args() {
		if a.Most != nil {
			out = append(out, gopkg.Count{Name: a.Name, Most: *a.Most})
		}
	}
	return out
}

// variants compiles a problem's best known configuration: as only the GPU's own
// architecture runs it, where that makes a difference, and as later ones do too. What was
// tuned as the one need not be good as the other, which is then the default. Where there
// is a rule for the problem as it was asked for, there are several.
func (g *generator) variants(f *family.Family, p family.Problem, gpu *target.GPU, asked bool) ([]gopkg.Variant, error) {
	if asked {
		if r, err := g.ruleFor(f, p, gpu); err != nil || r != nil {
			if err != nil {
				return nil, err
			}
			return g.byRule(r, f, p, gpu)
		}
	}
	c, from, err := g.config(f, p, gpu)
	if err != nil {
		return nil, err
	}
	own, err := compileFor(p, c, gpu, codegen.Options{})
	if err != nil {
		return nil, compileError(fmt.Errorf("%s on %s: %w", f.Name, gpu.ID, err))
	}
	g.note(f, gpu, c, from, sizesTaken(f, own))
	var out []gopkg.Variant
	if special(own) {
		v, err := newVariant(own, gpu, c, from)
		if err != nil {
			return nil, err
		}
		out = append(out, *v)
		if v, err = g.withPrologue(p, own, gpu, c, from); err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, *v)
		}
		if c, err = p.Default(gpu); err != nil {
			return nil, usage(err)
		}
		from = "default"
	}
	v, err := portableVariant(f, p, gpu, c, from)
	if err != nil {
		return nil, err
	}
	return append(out, *v), nil
}

// sizesTaken are the sizes that a program's kernels take for granted, by the names that
// callers of the package know; "" if they take any.
func sizesTaken(f *family.Family, c *codegen.Compiled) string {
	var all []string
	for _, k := range c.Program.Kernels {
		for _, a := range k.Assume {
			if a.Kind != ir.AssumeDimMultiple && a.Kind != ir.AssumeDimRange {
				continue
			}
			at := slices.IndexFunc(f.Sizes, func(e family.Extent) bool { return e.Symbol == a.Param.Type.Dims[a.Dim].Sym })
			if at < 0 { // a constant, or a size of the workspace
				continue
			}
			text := fmt.Sprintf("%s a multiple of %d", f.Sizes[at].Field, a.Lo)
			if a.Kind == ir.AssumeDimRange {
				text = fmt.Sprintf("%s from %d to %d", f.Sizes[at].Field, a.Lo, a.Hi)
			}
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, ", ")
}

// special tells whether portable code must stand beside a kernel: it is for one
// architecture, or takes tensor maps.
func special(c *codegen.Compiled) bool {
	return strings.HasSuffix(c.Module.Arch, "a") || c.TensorMaps()
}

func newVariant(c *codegen.Compiled, gpu *target.GPU, config space.Config, from string) (*gopkg.Variant, error) {
	text, err := c.PTX()
	if err != nil {
		return nil, err
	}
	driver, err := leastDriver(text)
	if err != nil {
		return nil, err
	}
	return &gopkg.Variant{Compiled: c, PTX: text, GPU: gpu.Name, Keys: gpu.Keys(), Driver: driver, Config: config.String(), Provenance: from + " for " + gpu.Name}, nil
}

// withPrologue is a kernel that takes tensor maps for devices that cannot encode them, where
// the package is to have those; nil where not.
func (g *generator) withPrologue(p family.Problem, own *codegen.Compiled, gpu *target.GPU, c space.Config, from string) (*gopkg.Variant, error) {
	if !g.prologue || !own.TensorMaps() {
		return nil, nil
	}
	made, err := compileFor(p, c, gpu, codegen.Options{Prologue: true})
	if err != nil {
		return nil, compileError(err)
	}
	return newVariant(made, gpu, c, from)
}

// compileFor compiles a configuration under options.
func compileFor(p family.Problem, config space.Config, gpu *target.GPU, o codegen.Options) (*codegen.Compiled, error) {
	program, err := p.Program(config)
	if err != nil {
		return nil, err
	}
	return codegen.Compile(program, gpu, o)
}

// leastDriver is the CUDA version of the first driver that reads PTX of the text's
// version, as cuDriverGetVersion writes it.
func leastDriver(text string) (int, error) {
	_, rest, _ := strings.Cut(text, ".version ")
	version, _, _ := strings.Cut(rest, "\n")
	v, err := target.ParsePTXVersion(strings.TrimSpace(version))
	if err != nil {
		return 0, err
	}
	for _, r := range target.PTXReleases() {
		if !r.PTX.Less(v) {
			major, minor, _ := strings.Cut(r.CUDA, ".")
			m, err := strconv.Atoi(major)
			if err != nil {
				return 0, err
			}
			n, err := strconv.Atoi(minor)
			return 1000*m + 10*n, err
		}
	}
	return 0, fmt.Errorf("PTX version %s: no driver known", v)
}
