package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/gopkg"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune/store"
)

// generateFlags are what kgen generate takes beside the families.
type generateFlags struct {
	maps        choice
	gpus, rules []string
	dir         string
	name        string // of the package; "" for the folder's
	store       string
}

func (a *app) generateCommand() *cobra.Command {
	f := &generateFlags{maps: *mapsChoice()}
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
With --maps prologue there is one more, for the others: a kernel of one block makes the maps
before each run. It takes the place of portable code on the architecture that it is for, wants
a driver for CUDA 12.5, and is as long as the one it stands beside.

The folder must be new, empty or of an earlier run, and is made with those above
it; what an earlier run wrote is replaced. A run that is killed while it replaces
files leaves a package that does not compile, and the next one mends it. The same command with the same store gives the same bytes.`,
		Example: `  kgen generate flashattn gemm layernorm paged --gpu a100,h100 -o kernels --package kernels
  kgen generate flashattn:head-dim=64,causal=false --gpu rtx4090 -o attn --package attn
  kgen generate gemm --gpu a100 --rule gemm-a100-sxm4-80-rule.json -o gemm`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("missing FAMILY: want one or more of %s", strings.Join(familyNames(), ", "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.generate(args, f) },
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return familyNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringSliceVar(&f.gpus, "gpu", nil, "`NAMES` of the GPUs, as h100,a100")
	filledFlag(c, &f.dir, "output", "o", "`FOLDER` of the package")
	filledFlag(c, &f.name, "package", "", "`NAME` of the package (default the folder's)")
	filledFlag(c, &f.store, "store", "", "`FILE` of tuning results (default the one that tune writes)")
	c.Flags().StringArrayVar(&f.rules, "rule", nil, "`FILE` of a rule that kgen tune --shapes wrote, by which plans choose configurations; may be given again")
	choiceFlag(c, &f.maps, "maps", mapsDoc+"; such kernels then stand beside the others")
	mustComplete(c, "gpu", completeGPUFlag)
	return c
}

// generate writes the package of the families that args name.
func (a *app) generate(args []string, f *generateFlags) error {
	if f.dir == "" {
		return usagef("-o is missing: want the folder of the package")
	}
	if len(f.gpus) == 0 {
		return usagef("--gpu is missing: want names such as a100,h100; kgen gpus lists them")
	}
	if err := packageFolder(f.dir); err != nil {
		return err
	}
	if err := checkFolder("-o", f.dir, f.dir); err != nil {
		return err
	}
	name := cmp.Or(f.name, filepath.Base(f.dir))
	if err := gopkg.CheckName(name); err != nil {
		return usage(err)
	}
	g := &generator{app: a, store: f.store, prologue: f.maps.value == byPrologue}
	defer g.close()
	var err error
	if g.rules, err = readRules(f.rules); err != nil {
		return err
	}
	p, err := g.collect(args, f.gpus, name)
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
	if err := writePackage(f.dir, p, files); err != nil {
		return err
	}
	g.tell()
	return nil
}

// generator collects what goes into a package.
type generator struct {
	*app
	store    string
	prologue bool // beside kernels that take tensor maps also those that make them
	open     *store.Store
	runs     []store.Run // newest first
	rules    []*sizeRule
	said     []string // where the configurations are from, of each family and GPU
}

func (g *generator) close() {
	if g.open != nil {
		g.open.Close()
	}
}

func (g *generator) collect(args, gpuNames []string, name string) (*gopkg.Package, error) {
	p := &gopkg.Package{Name: name, Version: readBuildInfo().Version}
	p.Command = "kgen generate " + strings.Join(args, " ") + " --gpu " + strings.Join(gpuNames, ",") + " --package " + name
	if g.prologue {
		p.Command += " --maps " + byPrologue
	}
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

// note keeps what tell says of a family on a GPU, of the problem of the flags alone: takes
// are the sizes that a tuned configuration serves, "" for any.
func (g *generator) note(f *family.Family, gpu *target.GPU, c space.Config, from, takes string) {
	start := f.Name + " on " + gpu.ID + ": "
	if slices.ContainsFunc(g.said, func(s string) bool { return strings.HasPrefix(s, start) }) {
		return
	}
	if from == "default" {
		from, takes = "default, not tuned", ""
	} else {
		from = "tuned, " + from
	}
	if takes != "" {
		takes = "; for " + takes + ": other sizes get the default"
	}
	g.said = append(g.said, start+from+": "+c.String()+takes)
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

// generated is a family of a package, with the flags given.
type generated struct {
	family *family.Family
	given  map[string]string
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
			return nil, usagef("%s: named twice: a package has one set of options of a family: want two commands, such as kgen generate %s -o one and kgen generate %s -o two", f.Name, f.Name, arg)
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
