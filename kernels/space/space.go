// Package space describes a search space as data: named integer parameters, and
// constraints written as Go expressions over the parameters, the problem's sizes and
// the target's limits. It enumerates what is valid in a fixed order and says how many
// points each constraint removed.
package space

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Space is a product of parameters narrowed by constraints.
type Space struct {
	Params      []Param
	Lets        []Let
	Constraints []Constraint
}

// Param is one axis: the values a search tries, in the order it tries them.
type Param struct {
	Name   string
	Values []int
	// Also lists values that are legal when set by hand but that no search tries.
	Also []int
	// Words, where there are some, are what the values 0, 1, ... stand for. Expressions
	// compare such a parameter with "word" by == and !=.
	Words []string
	Doc   string
}

// Words makes a parameter whose values are words.
func Words(name string, words ...string) Param {
	p := Param{Name: name, Words: words}
	for i := range words {
		p.Values = append(p.Values, i)
	}
	return p
}

// Let is a name for an expression, a number or a condition, which constraints and other
// expressions may use.
type Let struct {
	Name string
	Expr string
}

// Constraint is a condition every configuration meets. Expr is a Go expression of type
// bool.
//
// An expression holds integers, the names of parameters, of lets and of the Env, true and
// false, + - * / % on integers (/ truncates as in Go), comparisons, && || ! on
// conditions, parentheses, "words" that a parameter of words is compared with,
// min(a, ...), max(a, ...), ceildiv(a, b) and floordiv(a, b), the quotient rounded up
// and down, and floormod(a, b), what floordiv leaves. Arithmetic is on int64. A
// condition that divides by zero or overflows doesn't hold.
type Constraint struct {
	Name string
	Expr string
	Doc  string
}

// Env gives values to the names a constraint may use besides the parameters: problem
// sizes and limits of the target.
type Env map[string]int64

// Names returns the parameters' names in order.
func (s *Space) Names() []string {
	names := make([]string, len(s.Params))
	for i, p := range s.Params {
		names[i] = p.Name
	}
	return names
}

// Param returns the parameter called name.
func (s *Space) Param(name string) (Param, bool) {
	i := slices.IndexFunc(s.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return s.Params[i], true
}

// Override returns base with the settings, each `name=value`, applied. An unknown
// name, a name given twice, or a value the parameter doesn't allow is an error that
// lists what is allowed.
func (s *Space) Override(base Config, settings []string) (Config, error) {
	c := base
	seen := map[string]bool{}
	for _, text := range settings {
		name, value, err := s.setting(text)
		if err != nil {
			return Config{}, err
		}
		if seen[name] {
			return Config{}, fmt.Errorf("setting %q: %s is set twice", clip(text), clip(name))
		}
		seen[name] = true
		c = c.With(name, value)
	}
	return c, nil
}

// Parse reads the canonical text of a configuration, `BM=128 BN=64`: every parameter
// once, in any order.
func (s *Space) Parse(text string) (Config, error) {
	fields := strings.Fields(text)
	c, err := s.Override(Config{}, fields)
	if err != nil {
		return Config{}, err
	}
	values := make([]int, len(s.Params))
	for i, p := range s.Params {
		v, ok := c.Get(p.Name)
		if !ok {
			return Config{}, fmt.Errorf("configuration %q: no value for %s, want one of %s", clip(text), p.Name, p.allowed())
		}
		values[i] = v
	}
	return s.config(values), nil
}

// config makes a configuration of a value for each parameter.
func (s *Space) config(values []int) Config {
	return Config{names: s.Names(), values: values, words: s.words()}
}

// words lists the words of each parameter; nil if none has any.
func (s *Space) words() [][]string {
	if !slices.ContainsFunc(s.Params, func(p Param) bool { return p.Words != nil }) {
		return nil
	}
	var words [][]string
	for _, p := range s.Params {
		words = append(words, p.Words)
	}
	return words
}

// Check reports a parameter without a value in c or with one that isn't legal. It
// leaves the constraints aside: those need a Bound.
func (s *Space) Check(c Config) error {
	for _, p := range s.Params {
		v, ok := c.Get(p.Name)
		switch {
		case !ok:
			return fmt.Errorf("configuration %q: no value for %s, want one of %s", c, p.Name, p.allowed())
		case !p.allows(v):
			return fmt.Errorf("configuration %q: %s cannot be %d, want one of %s", c, p.Name, v, p.allowed())
		}
	}
	return nil
}

// setting splits and checks one `name=value`.
func (s *Space) setting(text string) (string, int, error) {
	name, digits, ok := strings.Cut(text, "=")
	if !ok {
		return "", 0, fmt.Errorf("setting %q: want NAME=VALUE, with NAME one of %s", clip(text), list(s.Names()))
	}
	p, ok := s.Param(name)
	if !ok {
		return "", 0, fmt.Errorf("setting %q: no parameter %q, want one of %s", clip(text), clip(name), list(s.Names()))
	}
	v, err := p.read(digits)
	if err != nil || !p.allows(v) {
		return "", 0, fmt.Errorf("setting %q: %s cannot be %q, want one of %s", clip(text), clip(name), clip(digits), p.allowed())
	}
	return name, v, nil
}

// read reads a value's text.
func (p Param) read(text string) (int, error) {
	if p.Words == nil {
		return strconv.Atoi(text)
	}
	return slices.Index(p.Words, text), nil // -1 is allowed nowhere
}

func (p Param) allows(v int) bool {
	return slices.Contains(p.Values, v) || slices.Contains(p.Also, v)
}

// allowed lists the legal values in rising order.
func (p Param) allowed() string {
	if p.Words != nil {
		return list(p.Words)
	}
	all := slices.Concat(p.Values, p.Also)
	slices.Sort(all)
	words := make([]string, 0, len(all))
	for _, v := range slices.Compact(all) {
		words = append(words, strconv.Itoa(v))
	}
	return list(words)
}

// What an error shows of a text, in bytes, and of a list.
const (
	mostShown  = 200
	mostListed = 64
)

// clip is what an error shows of a text.
func clip(text string) string { return excerpt(text, 1) }

// excerpt is what an error shows of a text around a column, from 1.
func excerpt(text string, column int) string {
	if len(text) <= mostShown {
		return text
	}
	from := min(max(0, column-1-mostShown/2), len(text)-mostShown)
	shown := strings.ToValidUTF8(text[from:from+mostShown], "")
	if from > 0 {
		shown = "..." + shown
	}
	if from+mostShown < len(text) {
		shown += "..."
	}
	return shown
}

// list is what an error shows of a list: of a long one its beginning and its end.
func list(words []string) string {
	if n := len(words); n > mostListed {
		words = slices.Concat(words[:mostListed-1], []string{fmt.Sprintf("... (%d in all)", n), words[n-1]})
	}
	return strings.Join(words, ", ")
}

// check finds mistakes in the data itself.
func (s *Space) check(env Env) error {
	seen := map[string]bool{}
	for _, p := range s.Params {
		switch {
		case !isName(p.Name):
			return fmt.Errorf("parameter %q: want a Go identifier for a name", clip(p.Name))
		case seen[p.Name]:
			return fmt.Errorf("parameter %s is declared twice", p.Name)
		case len(p.Values) == 0:
			return fmt.Errorf("parameter %s has no values", p.Name)
		}
		if w := p.repeatedWord(); w != "" {
			return fmt.Errorf("parameter %s lists %q twice", p.Name, w)
		}
		if _, taken := env[p.Name]; taken {
			return fmt.Errorf("parameter %s has the name of a size or limit: rename it", p.Name)
		}
		values := make(map[int]bool, len(p.Values))
		for _, v := range p.Values {
			if values[v] {
				return fmt.Errorf("parameter %s lists %d twice", p.Name, v)
			}
			values[v] = true
		}
		seen[p.Name] = true
	}
	for _, l := range s.Lets {
		_, taken := env[l.Name]
		switch {
		case !isName(l.Name):
			return fmt.Errorf("let %q: want a Go identifier for a name", clip(l.Name))
		case seen[l.Name] || taken:
			return fmt.Errorf("let %s: the name is taken: rename it", l.Name)
		}
		seen[l.Name] = true
	}
	return nil
}

// repeatedWord is a word that stands twice among a parameter's; "" if none does.
func (p Param) repeatedWord() string {
	for i, w := range p.Words {
		if slices.Contains(p.Words[:i], w) {
			return w
		}
	}
	return ""
}
