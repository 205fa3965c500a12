package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/atomicfile"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
)

func (a *app) generateCommand() *cobra.Command {
	var gpus, rules []string
	var dir, name, file string
	c := &cobra.Command{
		Use:   "generate FAMILY[:FLAG=VALUE,...]...",
		Short: "Write a Go package that carries kernels to other programs",
		Long: `Write a Go package with kernels of the families for the GPUs. It imports the
standard library alone: images are embedded, and a plan (what to launch, with
which parameters) is made from a device and a shape without a GPU. Sizes are
run-time arguments; a family's other flags are fixed, and can be set after a
colon. What they make of a number that a kernel takes, such as --eps, is what it
gets for 0. A size that is set (gemm:m=512) only says for which problem the
configuration is. The configuration is the best verified one of the store for the problem
of the flags and the GPU, or else the default; a plan's Provenance says which. With
--rule plans choose among several by sizes, as kgen tune --shapes found best.
Code is portable, for later GPUs too. Where a GPU has more, as Hopper has wgmma
and tensor maps and Blackwell has the latter, there is a variant of each: plans take
the one with tensor maps for devices of which Device.TensorMaps says that they can be encoded.

The folder must be new, empty or of an earlier run, and is made with those above
it; what an earlier run wrote
is replaced. The same command with the same store gives the same bytes.`,
		Example: `  kgen generate flashattn gemm layernorm paged --gpu a100,h100 -o kernels --package kernels
  kgen generate flashattn:head-dim=64,causal=false --gpu rtx4090 -o attn --package attn
  kgen generate gemm --gpu a100 --rule gemm-a100-sxm4-80-rule.json -o gemm`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("missing FAMILY: want one or more of %s", strings.Join(familyNames(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("-o is missing: want the folder of the package")
			}
			if len(gpus) == 0 {
				return usagef("--gpu is missing: want names such as a100,h100; kgen gpus lists them")
			}
			if !c.Flags().Changed("package") {
				name = filepath.Base(dir)
			}
			if err := packageFolder(dir); err != nil {
				return err
			}
			if err := checkFolder("-o", dir, dir); err != nil {
				return err
			}
			if err := gopkg.CheckName(name); err != nil {
				return usage(err)
			}
			g := &generator{app: a, store: file}
			var err error
			if g.rules, err = readRules(rules); err != nil {
				return err
			}
			defer g.close()
			p, err := g.collect(args, gpus, name)
			if err != nil {
				return err
			}
			if err := g.unusedRule(); err != nil {
				return err
			}
			files, err := gopkg.Write(p)
			if err != nil {
				return usage(err)
			}
			if err := writePackage(dir, files); err != nil {
				return err
			}
			g.tell()
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return familyNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringSliceVar(&gpus, "gpu", nil, "`NAMES` of the GPUs, as h100,a100")
	c.Flags().StringVarP(&dir, "output", "o", "", "`FOLDER` of the package")
	c.Flags().StringVar(&name, "package", "", "`NAME` of the package (default the folder's)")
	c.Flags().StringVar(&file, "store", "", "`FILE` of tuning results (default the one that tune writes)")
	c.Flags().StringArrayVar(&rules, "rule", nil, "`FILE` of a rule that kgen tune --shapes wrote, by which plans choose configurations; may be given again")
	mustComplete(c, "gpu", completeGPUFlag)
	return c
}

// generator collects what goes into a package.
type generator struct {
	*app
	store string
	open  *store.Store
	runs  []store.Run // newest first
	rules []*sizeRule
	said  []string // where the configurations are from, of each family and GPU
}

func (g *generator) close() {
	if g.open != nil {
		g.open.Close()
	}
}

func (g *generator) collect(args, gpuNames []string, name string) (*gopkg.Package, error) {
	p := &gopkg.Package{Name: name, Version: readBuildInfo().Version}
	p.Command = "kgen generate " + strings.Join(args, " ") + " --gpu " + strings.Join(gpuNames, ",") + " --package " + name
	for _, r := range g.rules {
		p.Command += " --rule " + r.file
	}
	var gpus []*target.GPU
	for _, n := range gpuNames {
		gpu, err := lookupGPU(n)
		if err != nil {
			return nil, err
		}
		if err := codegen.Supports(gpu); err != nil {
			return nil, usage(err)
		}
		if !slices.Contains(gpus, gpu) {
			gpus = append(gpus, gpu)
		}
	}
	// The newest architecture first: its device also runs what is for older ones.
	slices.SortStableFunc(gpus, func(x, y *target.GPU) int { return y.CC.SM() - x.CC.SM() })
	if err := g.openStore(); err != nil {
		return nil, err
	}
	asked, err := familyArguments(args)
	if err != nil {
		return nil, err
	}
	for _, a := range asked {
		out, err := g.family(a.family, a.given, gpus)
		if err != nil {
			return nil, err
		}
		p.Families = append(p.Families, *out)
	}
	return p, nil
}

// openStore opens the store of tuning results if there is one.
func (g *generator) openStore() error {
	path := g.store
	if path == "" {
		var err error
		if path, err = store.DefaultPath(); err != nil {
			return nil // nowhere to have tuned
		}
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	} else if _, err := os.Stat(path); err != nil {
		return usagef("--store %s: %s: want a file that kgen tune wrote", path, reason(err))
	}
	var err error
	g.open, err = store.OpenWhole(path)
	switch {
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrNewer):
		return usage(err)
	case err != nil:
		return err
	}
	g.runs, err = g.open.Runs()
	return err
}

// generated is a family of a package, with the flags given.
type generated struct {
	family *family.Family
	given  map[string]string
}

// note keeps what tell says of a family on a GPU, of the problem of the flags alone.
func (g *generator) note(f *family.Family, gpu *target.GPU, c space.Config, from string) {
	start := f.Name + " on " + gpu.ID + ": "
	if slices.ContainsFunc(g.said, func(s string) bool { return strings.HasPrefix(s, start) }) {
		return
	}
	if from == "default" {
		from = "default, not tuned"
	} else {
		from = "tuned, " + from
	}
	g.said = append(g.said, start+from+": "+c.String())
}

// tell says where the configurations are from, unless nothing is to be said.
func (g *generator) tell() {
	if g.quiet {
		return
	}
	for _, line := range g.said {
		fmt.Fprintln(g.err, line)
	}
}

// familyArguments reads what a package is to hold: the families named, and those that go
// with them unless they are named too, with the flags that both have.
func familyArguments(args []string) ([]generated, error) {
	var named []generated
	seen := map[string]bool{}
	for _, arg := range args {
		f, given, err := familyArgument(arg)
		if err != nil {
			return nil, err
		}
		if seen[f.Name] {
			return nil, usagef("%s: named twice: want packages of their own for different options", f.Name)
		}
		seen[f.Name] = true
		named = append(named, generated{f, given})
	}
	var all []generated
	for _, n := range named {
		all = append(all, n)
		for _, name := range n.family.With {
			f, err := kernelFamily(name)
			if err != nil {
				return nil, err
			}
			if !seen[name] {
				seen[name] = true
				all = append(all, generated{f, shared(f, n.given)})
			}
		}
	}
	return all, nil
}

// shared are the flags given that a family has.
func shared(f *family.Family, given map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range given {
		if slices.ContainsFunc(f.Flags, func(x family.Flag) bool { return x.Name == name }) {
			out[name] = value
		}
	}
	return out
}

// familyArgument reads FAMILY[:FLAG=VALUE,...].
func familyArgument(arg string) (*family.Family, map[string]string, error) {
	name, rest, has := strings.Cut(arg, ":")
	f, err := kernelFamily(name)
	if err != nil || !has {
		return f, nil, err
	}
	given := map[string]string{}
	for setting := range strings.SplitSeq(rest, ",") {
		flag, value, ok := strings.Cut(setting, "=")
		if !ok || flag == "" {
			return nil, nil, usagef("%s: %q: want FLAG=VALUE", arg, setting)
		}
		if _, twice := given[flag]; twice {
			return nil, nil, usagef("%s: %s is set twice", arg, flag)
		}
		given[flag] = value
	}
	return f, given, nil
}

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
			problem, err := f.Problem(flags, gpu)
			if err != nil {
				return nil, usage(fmt.Errorf("%s: %w", f.Name, err))
			}
			fixed := fixedOptions(f, problem)
			if out.Scalars == nil {
				out.Fixed, out.Scalars = fixed, scalars(problem)
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
			out[a.Name] = gopkg.Scalar{Doc: a.Doc, Int: a.Int, Float: a.Float, Unread: a.Unread, Dropout: a.Dropout}
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
	own, err := compileFor(p, c, gpu, false)
	if err != nil {
		return nil, compileError(fmt.Errorf("%s on %s: %w", f.Name, gpu.ID, err))
	}
	g.note(f, gpu, c, from)
	var out []gopkg.Variant
	if special(own) {
		v, err := newVariant(own, gpu, c, from)
		if err != nil {
			return nil, err
		}
		out = append(out, *v)
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
	return &gopkg.Variant{Compiled: c, PTX: text, GPU: gpu.Name, Driver: driver, Config: config.String(), Provenance: from}, nil
}

// config is the best verified configuration that the store has for a problem and the
// provenance of its time, or else the default.
func (g *generator) config(f *family.Family, p family.Problem, gpu *target.GPU) (space.Config, string, error) {
	c, err := p.Default(gpu)
	if err != nil {
		return c, "", usage(err)
	}
	best, err := g.tuned(f, p, gpu)
	if best == nil || err != nil {
		return c, "default", err
	}
	bound, err := p.Space(gpu)
	if err != nil {
		return c, "", err
	}
	tuned, err := bound.Space().Override(c, strings.Fields(best.Config))
	if err != nil || bound.Check(tuned) != nil { // of another version's space
		return c, "default", nil
	}
	return tuned, best.Provenance.String(), nil
}

// compileFor compiles a configuration, portable for code that later GPUs run too.
func compileFor(p family.Problem, config space.Config, gpu *target.GPU, portable bool) (*codegen.Compiled, error) {
	program, err := p.Program(config)
	if err != nil {
		return nil, err
	}
	return codegen.Compile(program, gpu, codegen.Options{Portable: portable})
}

// tuned is the fastest verified evaluation of a problem, nil if there is none. A measured
// one comes before any predicted one, and of these the newest run's: what several models
// predict does not compare.
func (g *generator) tuned(f *family.Family, p family.Problem, gpu *target.GPU) (*store.Evaluation, error) {
	problem, err := p.Settings().MarshalJSON()
	if err != nil {
		return nil, err
	}
	var best *store.Evaluation
	for i := range g.runs {
		r := &g.runs[i]
		if r.Family != f.Name || r.GPU != gpu.ID || !sameJSON(r.Problem, problem) {
			continue
		}
		all, err := g.open.Best(r, math.MaxInt)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(e store.Evaluation) bool { return e.Verified })
		if at >= 0 && (best == nil || measuredFaster(&all[at], best)) {
			best = &all[at]
		}
	}
	return best, nil
}

// sameJSON compares objects whatever the order of their keys.
func sameJSON(x, y []byte) bool {
	var a, b any
	return json.Unmarshal(x, &a) == nil && json.Unmarshal(y, &b) == nil && reflect.DeepEqual(a, b)
}

// measuredFaster tells whether an evaluation was measured and than was not, or was slower.
func measuredFaster(e, than *store.Evaluation) bool {
	return e.Provenance == bench.Measured && (than.Provenance != bench.Measured || e.TimeUS < than.TimeUS)
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

// packageFolder holds a package's folder to be new, empty or of an earlier run.
func packageFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usagef("-o %s: %w", dir, reason(err))
	}
	if len(entries) == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	if err != nil || !gopkg.Ours(text) {
		return usagef("-o %s: holds files that kgen did not write: want a new or empty folder", dir)
	}
	return nil
}

// writePackage writes the files, all or none, and removes what an earlier run wrote
// and this one did not.
func writePackage(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return outputError("-o", dir, err)
	}
	old, err := earlier(dir)
	if err != nil {
		return outputError("-o", dir, err)
	}
	var out []atomicfile.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, atomicfile.Bytes(filepath.Join(dir, name), files[name]))
	}
	if err := atomicfile.Write(out...); err != nil {
		return outputError("-o", dir, err)
	}
	for _, name := range old {
		if _, kept := files[name]; !kept {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return outputError("-o", dir, err)
			}
		}
	}
	return nil
}

// earlier lists what an earlier run wrote: Go files that say so, and the images that
// they embed.
func earlier(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if !gopkg.Ours(text) {
			continue
		}
		names = append(names, e.Name())
		for line := range strings.Lines(string(text)) {
			if image, ok := strings.CutPrefix(strings.TrimSpace(line), "//go:embed "); ok {
				if _, err := os.Stat(filepath.Join(dir, image)); err == nil {
					names = append(names, image)
				}
			}
		}
	}
	return names, nil
}
