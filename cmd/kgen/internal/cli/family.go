package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/wordlist"
	"github.com/kgen-dev/kgen/kernels"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/tune"
)

// job is what a command that works on one kernel was asked to work on.
type job struct {
	family  *family.Family
	gpu     *target.GPU
	gpuName string // as it was given
	problem family.Problem
	given   map[string]string // the family's flags, as far as they were given
}

// familyVerb is a command with a subcommand for each kernel family, which has
// the family's flags beside the command's own.
type familyVerb struct {
	name, short, long string
	example           string
	flags             func(c *cobra.Command) // declares the command's own flags
	run               func(ctx context.Context, j *job) error
	// file, if not nil, takes the name of a file in a family's place, one that ends as
	// endings say, and the GPU's name. fileFlags declares what only a file takes.
	file      func(ctx context.Context, name, gpu string) error
	endings   []string
	fileFlags func(c *cobra.Command)
	// alone, if not nil, returns what to do without a family when flags ask for that, and
	// else nil.
	alone func(gpu string) func(ctx context.Context) error

	// fileFlag is the flag that takes a file, for who names one in a family's place.
	fileFlag string

	otherwise string // what may stand instead of a family, for the message that it is missing
}

// gpuUsage is the usage text of --gpu.
const gpuUsage = "`NAME` of the GPU, such as h100 or sm_86; kgen gpus lists them. Or FILE.json with one of your own"

func (a *app) familyCommand(v familyVerb) *cobra.Command {
	var gpu string
	parent := &cobra.Command{
		Use:     v.name + " FAMILY",
		Short:   v.short,
		Long:    v.long,
		Example: v.example,
		Args: func(c *cobra.Command, args []string) error {
			if v.standsAlone(gpu) != nil {
				return v.noFamily(c.CommandPath(), args)
			}
			if len(args) == 0 {
				return usagef("%s: missing FAMILY: want one of %s%s", c.CommandPath(), strings.Join(familyNames(), ", "), v.otherwise)
			}
			if v.takes(args[0]) {
				return positional("FILE")(c, args)
			}
			return v.refuse(c, args[0])
		},
		RunE: func(c *cobra.Command, args []string) error { // families are subcommands: a file
			if run := v.standsAlone(gpu); run != nil {
				return run(c.Context())
			}
			return v.file(c.Context(), args[0], gpu)
		},
	}
	if v.file != nil {
		parent.Use = v.name + " FAMILY|FILE" + strings.Join(v.endings, "|FILE")
	}
	parent.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); c == parent && len(words) > 0 && !v.takes(words[0]) {
			return v.refuse(c, words[0]) // whose flags these may be
		}
		return flagError(c, err)
	})
	parent.AddGroup(&cobra.Group{ID: "families", Title: "Families:"})
	own := func(c *cobra.Command) {
		c.Flags().SortFlags = false
		c.Flags().StringVar(&gpu, "gpu", "", gpuUsage)
		v.flags(c)
		mustComplete(c, "gpu", completeGPUFlag)
	}
	own(parent) // so that they may stand before the family
	if v.fileFlags != nil {
		v.fileFlags(parent)
	}
	for _, f := range kernels.Families() {
		parent.AddCommand(familySubcommand(v, f, &gpu, own))
	}
	return parent
}

// takes says whether a word names a file that the command takes.
func (v *familyVerb) takes(word string) bool {
	return slices.ContainsFunc(v.endings, func(end string) bool { return strings.HasSuffix(word, end) })
}

// refuse refuses a word that is no family.
func (v *familyVerb) refuse(c *cobra.Command, word string) error {
	if v.fileFlag != "" && filepath.Ext(word) != "" {
		return usagef("%[1]s %[2]s: want a family, and the file as --%[3]s %[2]s: one of %[4]s", c.CommandPath(), word, v.fileFlag, strings.Join(familyNames(), ", "))
	}
	_, err := kernelFamily(word)
	return err
}

func (v *familyVerb) standsAlone(gpu string) func(context.Context) error {
	if v.alone == nil {
		return nil
	}
	return v.alone(gpu)
}

// noFamily refuses a family beside what stands instead of one.
func (v *familyVerb) noFamily(command string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s %s: want a family, %s: not both", command, args[0], strings.TrimPrefix(v.otherwise, "; "))
}

func familySubcommand(v familyVerb, f *family.Family, gpu *string, own func(*cobra.Command)) *cobra.Command {
	given := map[string]string{}
	c := &cobra.Command{
		Use:               f.Name,
		Short:             f.Doc,
		GroupID:           "families",
		Example:           linesWith(v.example, " "+f.Name+" "),
		Args:              positional(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if v.standsAlone(*gpu) != nil {
				return v.noFamily(c.Parent().CommandPath(), []string{f.Name})
			}
			j, err := newJob(f, *gpu, given)
			if err != nil {
				return err
			}
			return v.run(c.Context(), j)
		},
	}
	own(c)
	for _, spec := range f.Flags {
		addProblemFlag(c, spec, given)
	}
	return c
}

func newJob(f *family.Family, gpu string, given map[string]string) (*job, error) {
	g, err := lookupGPU(gpu)
	if err != nil {
		return nil, err
	}
	p, err := f.Problem(given, g)
	if err != nil {
		return nil, usage(err)
	}
	return &job{family: f, gpu: g, gpuName: gpu, problem: p, given: given}, nil
}

func lookupGPU(name string) (*target.GPU, error) {
	if name == "" {
		return nil, usagef("--gpu is missing: want a name such as h100; kgen gpus lists them")
	}
	return anyGPU(name)
}

// anyGPU is a GPU of the table, or that of a file.
func anyGPU(name string) (*target.GPU, error) {
	if strings.HasSuffix(name, ".json") {
		g, err := target.ReadFile(name)
		return g, usage(err)
	}
	g, err := target.Lookup(name)
	return g, usage(err)
}

// config is the problem's default configuration with the settings of --set.
func (j *job) config(set []string) (space.Config, error) {
	bound, err := j.problem.Space(j.gpu)
	if err != nil {
		return space.Config{}, err
	}
	c, err := j.problem.Default(j.gpu)
	if err != nil {
		return c, usage(err)
	}
	if len(set) == 0 {
		return c, nil
	}
	if c, err = bound.Space().Override(c, settings(set)); err != nil {
		return c, usage(err)
	}
	return c, usage(bound.Check(c))
}

// settings are the parameters of each --set, between blanks as configurations are printed or commas as
// kgen generate takes flags.
func settings(set []string) (all []string) {
	for _, text := range set {
		each := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
		if len(each) == 0 {
			each = []string{text} // for the space to refuse
		}
		all = append(all, each...)
	}
	return all
}

// lower compiles a configuration and plans it for the problem's sizes, of which
// the plan refuses those that the kernels cannot compute with.
func (j *job) lower(c space.Config, o codegen.Options) (*codegen.Compiled, *codegen.Plan, error) {
	program, err := j.problem.Program(c)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := codegen.Compile(program, j.gpu, o)
	if err != nil {
		return nil, nil, compileError(err)
	}
	plan, err := compiled.Plan(tune.Arguments(j.problem.Args()))
	return compiled, plan, usage(err)
}

// launchable refuses sizes that the default configuration cannot be launched
// with, where code is generated for the GPU and there is such a configuration.
func (j *job) launchable() error {
	c, err := j.problem.Default(j.gpu)
	if err != nil {
		return nil //nolint:nilerr // whether there is one is not asked
	}
	_, _, err = j.lower(c, codegen.Options{Verify: true})
	if errors.Is(err, codegen.ErrArguments) {
		return err
	}
	return nil
}

// compileError classes what a compilation refused: a program that the GPU or
// the code generator has no room for is a choice of flags.
func compileError(err error) error {
	if errors.Is(err, codegen.ErrUnsupported) || errors.Is(err, codegen.ErrResources) {
		return usage(err)
	}
	return err
}

// settingFlag declares --set.
func settingFlag(c *cobra.Command, set *[]string) {
	c.Flags().StringArrayVar(set, "set", nil, "parameters of the configuration, `K=V` or several as kgen prints them, 'K=V K=V'; may be given again")
	mustComplete(c, "set", func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		f, err := kernelFamily(c.Name())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := familySpace(f)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var words []string
		for _, p := range s.Params {
			if !strings.HasPrefix(prefix, p.Name+"=") {
				words = append(words, p.Name+"=\t"+p.Doc)
				continue
			}
			for _, v := range slices.Sorted(slices.Values(slices.Concat(p.Values, p.Also))) {
				words = append(words, fmt.Sprintf("%s=%d", p.Name, v))
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// problemFlag is a family's flag on the command line. Its value is checked by
// family.Problem, which knows the GPU and the other flags.
type problemFlag struct {
	spec  family.Flag
	given map[string]string
}

func (f *problemFlag) String() string {
	if text, ok := f.given[f.spec.Name]; ok {
		return text
	}
	return f.spec.Default
}

func (f *problemFlag) Set(text string) error {
	if text == "" {
		return errors.New(f.spec.Range())
	}
	f.given[f.spec.Name] = text
	return nil
}

// Type is the word that help shows for the value.
func (f *problemFlag) Type() string {
	switch f.spec.Kind {
	case family.Int:
		return "n"
	case family.Float:
		return "x"
	case family.Bool:
		return "bool"
	}
	return "name"
}

func addProblemFlag(c *cobra.Command, spec family.Flag, given map[string]string) {
	doc := spec.Doc
	if spec.Kind == family.Choice || spec.Multiple > 1 {
		doc += "; " + spec.Range()
	}
	if spec.Kind == family.Bool && spec.Default == "true" {
		doc += "; --" + spec.Name + "=false turns it off"
	}
	flag := c.Flags().VarPF(&problemFlag{spec, given}, spec.Name, "", doc)
	if spec.Kind == family.Bool {
		flag.NoOptDefVal = "true"
	}
	mustComplete(c, spec.Name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, o := range spec.Options {
			names = append(names, o.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// choice is a flag whose value is one of a few words.
type choice struct {
	value string
	words []string
}

func (f *choice) String() string { return f.value }

func (f *choice) Set(text string) error {
	for _, w := range f.words {
		if w == text {
			f.value = text
			return nil
		}
	}
	return errors.New(wordlist.Or(f.words))
}

func (f *choice) Type() string { return strings.Join(f.words, "|") }

// choiceFlag declares a flag that takes one of words.
func choiceFlag(c *cobra.Command, f *choice, name, doc string) {
	c.Flags().Var(f, name, doc)
	mustComplete(c, name, cobra.FixedCompletions(f.words, cobra.ShellCompDirectiveNoFileComp))
}

// filled is a flag's text. An empty one is refused: it is a variable that was not set, and
// would be taken for a flag that was not given.
type filled string

func (f *filled) String() string { return string(*f) }

func (f *filled) Set(text string) error {
	if text == "" {
		return errors.New("a value")
	}
	*f = filled(text)
	return nil
}

// Type is the word that help shows for the value, where its text names none.
func (f *filled) Type() string { return "string" }

// filledFlag declares a flag that takes a text, with a short name or without.
func filledFlag(c *cobra.Command, to *string, name, short, doc string) {
	c.Flags().VarP((*filled)(to), name, short, doc)
}

// amount is a flag with a quantity from least to most of a unit; 0 is that of a flag
// that was not given.
type amount struct {
	value       float64
	least, most float64
	unit        string
}

func (f *amount) String() string {
	if f.value == 0 {
		return ""
	}
	return strconv.FormatFloat(f.value, 'g', -1, 64)
}

func (f *amount) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= f.least && v <= f.most) {
		return fmt.Errorf("%s from %g to %g", f.unit, f.least, f.most)
	}
	f.value = v
	return nil
}

func (f *amount) Type() string { return "x" }

var _, _, _ pflag.Value = &problemFlag{}, &choice{}, &amount{}

// linesWith keeps the lines that hold a word.
func linesWith(text, word string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return !strings.Contains(line, word) }), "\n")
}

// mustComplete gives a flag its completion; only a flag that does not exist is
// refused.
func mustComplete(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

func completeGPUFlag(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return completeGPUs(c, nil, prefix)
}
