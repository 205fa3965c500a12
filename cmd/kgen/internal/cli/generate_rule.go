package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/dispatch"
)

// ruleFor is the rule for a family's problem on a GPU, nil if there is none. It is an
// error if the rule is for other options.
func (g *generator) ruleFor(f *family.Family, p family.Problem, gpu *target.GPU) (*sizeRule, error) {
	i := slices.IndexFunc(g.rules, func(r *sizeRule) bool { return r.Kernel == f.Name && r.GPU == gpu.ID })
	if i < 0 {
		return nil, nil
	}
	r := g.rules[i]
	for _, q := range r.problems {
		if of, want := fixedOptions(f, q), fixedOptions(f, p); of != want {
			return nil, usagef("--rule %s: a rule for %s: want one for %s", r.file, of, want)
		}
	}
	r.used = true
	return r, nil
}

// config reads a configuration, which must be one for some of the rule's shapes.
func (r *sizeRule) config(text string, gpu *target.GPU) (c space.Config, err error) {
	for _, p := range r.problems {
		bound, err := p.Space(gpu)
		if err != nil {
			return c, err
		}
		if c, err = bound.Space().Parse(text); err != nil {
			break
		}
		if err = bound.Check(c); err == nil {
			return c, nil
		}
	}
	return c, usagef("--rule %s: no configuration of the space: %q", r.file, text)
}

// unusedRule refuses a rule for what the package does not hold.
func (g *generator) unusedRule() error {
	for _, r := range g.rules {
		if !r.used {
			return usagef("--rule %s: a rule for %s on %s: want one for a family and a GPU of the package", r.file, r.Kernel, r.GPU)
		}
	}
	return nil
}

// byRule compiles every configuration that a rule chooses among; if code for later GPUs
// is none of them, the untuned configuration serves these.
func (g *generator) byRule(r *sizeRule, f *family.Family, p family.Problem, gpu *target.GPU) ([]gopkg.Variant, error) {
	fallback, err := p.Default(gpu)
	if err != nil {
		return nil, usage(err)
	}
	texts := r.Rule.Configs()
	rule, err := ruleOf(f, r.Rule, texts)
	if err != nil {
		return nil, usagef("--rule %s: %w", r.file, err)
	}
	d := &gopkg.Dispatch{
		Name: strings.ToLower(f.Prefix[:1]) + f.Prefix[1:] + "On" + goIdentifier(gpu.ID), Rule: rule,
		Doc: r.doc(),
	}
	var out []gopkg.Variant
	portable := false
	for leaf, text := range texts {
		c, err := r.config(text, gpu)
		if err != nil {
			return nil, err
		}
		own, err := compileFor(p, c, gpu, codegen.Options{})
		if err != nil {
			return nil, compileError(fmt.Errorf("%s on %s: %w", f.Name, gpu.ID, err))
		}
		if !special(own) {
			portable = true
			if own, err = compileFor(p, c, gpu, codegen.Options{Portable: true}); err != nil {
				return nil, compileError(fmt.Errorf("%s on %s: %w", f.Name, gpu.ID, err))
			}
		}
		v, err := newVariant(own, gpu, c, r.Provenance)
		if err != nil {
			return nil, err
		}
		made, err := g.withPrologue(p, own, gpu, c, r.Provenance)
		if err != nil {
			return nil, err
		}
		for _, v := range []*gopkg.Variant{v, made} {
			if v != nil {
				v.Dispatch, v.Leaf = d, leaf
				out = append(out, *v)
			}
		}
		g.note(f, gpu, c, fmt.Sprintf("by rule among %d, %s", len(texts), r.Provenance), "")
	}
	if portable {
		return out, nil
	}
	v, err := portableVariant(f, p, gpu, fallback, "default")
	if err != nil {
		return nil, err
	}
	return append(out, *v), nil
}

// ruleOf translates a rule: sizes into fields of the family's shapes, configurations into
// their places in texts.
func ruleOf(f *family.Family, r *dispatch.Rule, texts []string) (*gopkg.Rule, error) {
	if r.Below == nil {
		return &gopkg.Rule{Leaf: slices.Index(texts, r.Config)}, nil
	}
	field := fieldOf(f, r.Size)
	if field == "" {
		return nil, fmt.Errorf("it asks for %s, which callers of %s do not give", r.Size, f.Name)
	}
	out := &gopkg.Rule{Field: field, Most: int64(r.Most)}
	var err error
	if out.Below, err = ruleOf(f, r.Below, texts); err != nil {
		return nil, err
	}
	out.Above, err = ruleOf(f, r.Above, texts)
	return out, err
}

// fieldOf is the field of a family's shapes that a flag stands for: SeqKV for seq-kv; ""
// if there is none.
func fieldOf(f *family.Family, flag string) string {
	plain := strings.ReplaceAll(flag, "-", "")
	for _, s := range f.Sizes {
		if strings.EqualFold(s.Field, plain) {
			return s.Field
		}
	}
	return ""
}

// goIdentifier is a GPU's id as a part of a Go name: A100Sxm480 for a100-sxm4-80.
func goIdentifier(id string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// knownSizes are the sizes of shapes that callers of generated packages give, or all where
// they give none.
func knownSizes(f *family.Family, sizes map[string]int64) map[string]float64 {
	out := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if fieldOf(f, name) != "" {
			out[name] = float64(sizes[name])
		}
	}
	if len(out) == 0 {
		for name, n := range sizes {
			out[name] = float64(n)
		}
	}
	return out
}

// doc says what the rule loses at worst.
func (r *sizeRule) doc() string {
	text := fmt.Sprintf("at worst %.1f %% slower than the best known of each of %d shapes (%s)", 100**r.WorstRegret, len(r.Shapes), r.Provenance)
	if r.HeldOut != nil {
		text += fmt.Sprintf(", and %.1f %% of each by a rule fitted without it", 100**r.HeldOut)
	}
	return text
}
