package family

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/internal/wordlist"
	"github.com/kgen-dev/kgen/ir"
)

// Kind is the type of a flag.
type Kind int

// The kinds of flags.
const (
	Int   Kind = iota
	Float      // of the range of f32, in which kernels take it
	Bool
	Choice
)

// Flag describes one option of a problem, enough to make a command-line flag of it and
// to check a value.
type Flag struct {
	Name    string
	Doc     string
	Kind    Kind
	Default string // "": the family decides; a Choice's is its first option that the GPU can do

	Min, Max int64    // Int: the range
	Multiple int64    // Int: above 1, the value is a multiple of this
	Options  []Option // Choice

	Positive bool    // Float: 0 or more
	Below    float64 // Float: if not 0, the value is below it

	size bool
}

// Option is a value of a Choice.
type Option struct {
	Name  string
	Since target.CC // first compute capability that has it; zero if all do
}

// MaxSize is the largest size of a dimension.
const MaxSize = ir.MaxDim

// Size returns a flag for a size from 1 to MaxSize; def is 0 where the family decides.
func Size(name string, def int, doc string) Flag { return SizeTo(name, def, MaxSize, doc) }

// SizeTo returns a flag for a size from 1 to most.
func SizeTo(name string, def int, most int64, doc string) Flag {
	text := ""
	if def > 0 {
		text = strconv.Itoa(def)
	}
	return Flag{Name: name, Doc: doc, Kind: Int, Default: text, Min: 1, Max: most, size: true}
}

// Switch returns a flag that is on or off.
func Switch(name string, def bool, doc string) Flag {
	return Flag{Name: name, Doc: doc, Kind: Bool, Default: strconv.FormatBool(def)}
}

// OneOf returns a flag whose value is one of options.
func OneOf(name, doc string, options ...Option) Flag {
	return Flag{Name: name, Doc: doc, Kind: Choice, Default: options[0].Name, Options: options}
}

// IsSize reports whether a flag is a size, which programs take as a run-time argument.
func (f Flag) IsSize() bool { return f.size }

// Values are a family's flags with checked values.
type Values struct {
	texts map[string]string
	given map[string]bool
}

// Given reports whether a flag was set rather than left to its default.
func (v Values) Given(name string) bool { return v.given[name] }

// Int returns the value of an Int flag.
func (v Values) Int(name string) int {
	n, err := strconv.Atoi(v.text(name))
	must(name, err)
	return n
}

// Float returns the value of a Float flag.
func (v Values) Float(name string) float64 {
	x, err := strconv.ParseFloat(v.text(name), 64)
	must(name, err)
	return x
}

// Bool returns the value of a Bool flag.
func (v Values) Bool(name string) bool {
	b, err := strconv.ParseBool(v.text(name))
	must(name, err)
	return b
}

// Choice returns the value of a Choice flag.
func (v Values) Choice(name string) string { return v.text(name) }

func (v Values) text(name string) string {
	t, ok := v.texts[name]
	if !ok {
		panic("family: flag " + name + " is not declared")
	}
	return t
}

// must panics: values were checked, so a failure is a family asking for the wrong kind.
func must(name string, err error) {
	if err != nil {
		panic("family: flag " + name + ": " + err.Error())
	}
}

// parse checks flags given as text and fills in the defaults.
func (f *Family) parse(given map[string]string, gpu *target.GPU) (Values, error) {
	v := Values{texts: map[string]string{}, given: map[string]bool{}}
	for _, flag := range f.Flags {
		text, ok := given[flag.Name]
		if !ok {
			v.texts[flag.Name] = flag.fallback(gpu)
			continue
		}
		canonical, err := flag.check(text, gpu)
		if err != nil {
			return Values{}, err
		}
		v.texts[flag.Name], v.given[flag.Name] = canonical, true
	}
	if len(v.given) == len(given) {
		return v, nil
	}
	var unknown []string
	for name := range given {
		if !v.given[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return Values{}, fmt.Errorf("--%s: no such flag of %s, want one of %s", unknown[0], f.Name, f.flagNames())
}

func (f *Family) flagNames() string {
	names := make([]string, len(f.Flags))
	for i, flag := range f.Flags {
		names[i] = "--" + flag.Name
	}
	return strings.Join(names, ", ")
}

// fallback returns the default on a GPU.
func (f Flag) fallback(gpu *target.GPU) string {
	for _, o := range f.Options {
		if o.on(gpu) {
			return o.Name
		}
	}
	return f.Default
}

func (o Option) on(gpu *target.GPU) bool {
	return gpu == nil || gpu.CC.AtLeast(o.Since.Major, o.Since.Minor)
}

// check returns text in canonical form, or what is wrong with it.
func (f Flag) check(text string, gpu *target.GPU) (string, error) {
	switch f.Kind {
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < f.Min || n > f.Max || f.Multiple > 1 && n%f.Multiple != 0 {
			return "", fmt.Errorf("--%s %s: want %s", f.Name, text, f.Range())
		}
		return strconv.FormatInt(n, 10), nil
	case Float:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(float64(float32(x)), 0) || f.Positive && x < 0 || f.Below != 0 && x >= f.Below {
			return "", fmt.Errorf("--%s %s: want %s", f.Name, text, f.Range())
		}
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	case Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "", fmt.Errorf("--%s %s: want %s", f.Name, text, f.Range())
		}
		return strconv.FormatBool(b), nil
	}
	i := slices.IndexFunc(f.Options, func(o Option) bool { return o.Name == text })
	if i < 0 {
		return "", fmt.Errorf("--%s %s: want %s", f.Name, text, f.Range())
	}
	if !f.Options[i].on(gpu) {
		possible := wordlist.Or(f.optionsOn(gpu))
		if possible == "" {
			possible = "another GPU: it has none of " + f.Range()
		}
		return "", fmt.Errorf("--%s %s: needs compute capability %s and %s has %s, want %s",
			f.Name, text, f.Options[i].Since, gpu.Name, gpu.CC, possible)
	}
	return text, nil
}

// Range says in words which values are legal.
func (f Flag) Range() string {
	switch {
	case f.Kind == Float:
		return f.floatRange()
	case f.Kind == Bool:
		return "true or false"
	case f.Kind == Choice:
		return wordlist.Or(f.optionsOn(nil))
	case f.Multiple > 1:
		return fmt.Sprintf("a multiple of %d from %d to %d", f.Multiple, f.Min, f.Max)
	}
	return fmt.Sprintf("a whole number from %d to %d", f.Min, f.Max)
}

func (f Flag) floatRange() string {
	least, to := "-3.4028e38", "3.4028e38, the range of f32"
	if f.Positive {
		least = "0"
	}
	if f.Below != 0 {
		to = fmt.Sprintf("below %g", f.Below)
	}
	return "a number from " + least + " to " + to
}

// optionsOn names the options that a GPU has; nil has all.
func (f Flag) optionsOn(gpu *target.GPU) []string {
	var names []string
	for _, o := range f.Options {
		if o.on(gpu) {
			names = append(names, o.Name)
		}
	}
	return names
}
