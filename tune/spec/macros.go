package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kgen-dev/kgen/kernels/space"
)

// Defines are the macros of a configuration, NAME=VALUE.
func (b *Bound) Defines(index []int) []string {
	c := b.Space.At(index)
	var out []string
	for i := range c.Len() {
		name, _ := c.At(i)
		out = append(out, name+"="+c.Text(i))
	}
	return append(out, wordDefines(b.Spec.Space.Params, out)...)
}

// wordDefines are the macros by which a source compares parameters that are words, of which
// defines give the values: NAME_WORD=1 of the value and =0 of the others, as far as they
// are names and no parameter's.
func wordDefines(params []space.Param, defines []string) []string {
	taken := map[string]bool{}
	for _, p := range params {
		taken[p.Name] = true
	}
	var out []string
	for _, p := range params {
		at := slices.IndexFunc(defines, func(d string) bool { return strings.HasPrefix(d, p.Name+"=") })
		if at < 0 {
			continue
		}
		for _, w := range p.Words {
			name, value := p.Name+"_"+w, "0"
			if defines[at] == p.Name+"="+w {
				value = "1"
			}
			if macroName.MatchString(name) && !taken[name] {
				taken[name] = true
				out = append(out, name+"="+value)
			}
		}
	}
	return out
}

// macroName matches a macro's name.
var macroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkMacros refuses macros that are not one line of a source each, and two of one name.
func (s *Spec) checkMacros() error {
	owner := map[string]string{}
	for _, p := range s.Space.Params {
		owner[p.Name] = "" // which keeps its name
	}
	for _, p := range s.Space.Params {
		for _, w := range p.Words {
			if err := oneLine(w); err != nil {
				return fmt.Errorf("parameter %s: word %w", p.Name, err)
			}
			name := p.Name + "_" + w
			other, taken := owner[name]
			switch {
			case !macroName.MatchString(name):
			case !taken:
				owner[name] = p.Name
			case other != "" && other != p.Name:
				return fmt.Errorf("parameters %s and %s: both have a word of the macro %s: rename one", other, p.Name, name)
			}
		}
	}
	if err := s.checkFlags(); err != nil {
		return err
	}
	if s.Reference == nil {
		return nil
	}
	for _, d := range s.Reference.Defines {
		name, value, _ := strings.Cut(d, "=")
		if err := oneLine(value); err != nil {
			return fmt.Errorf("reference: %s: %w", name, err)
		}
		if err := oneLine(name); err != nil {
			return fmt.Errorf("reference: macro %w", err)
		}
	}
	return nil
}

// checkFlags refuses flags that define a parameter's macro, or one of its words': the
// source would not have that value.
func (s *Spec) checkFlags() error {
	for i, flag := range s.Flags {
		macro := ""
		for _, option := range []string{"-D", "--define-macro=", "-U", "--undefine-macro="} {
			if rest, is := strings.CutPrefix(flag, option); is {
				macro = rest
			}
		}
		if i > 0 && slices.Contains([]string{"-D", "--define-macro", "-U", "--undefine-macro"}, s.Flags[i-1]) {
			macro = flag
		}
		if name, _, _ := strings.Cut(macro, "="); s.HasMacro(strings.TrimSpace(name)) {
			return fmt.Errorf("flags: %s: %s is a parameter's macro, which has each configuration's value: want another name", clip(flag), clip(name))
		}
	}
	return nil
}

// oneLine refuses a macro's value that another line would follow.
func oneLine(value string) error {
	if strings.ContainsAny(value, "\x00\n\r\v\f") || strings.HasSuffix(strings.TrimRight(value, " \t"), `\`) {
		return fmt.Errorf(`%q: want one without line breaks, NUL or a \ at the end`, clip(value))
	}
	return nil
}

// HasMacro tells whether a macro is a parameter's, or one of its words'.
func (s *Spec) HasMacro(name string) bool {
	return slices.ContainsFunc(s.Space.Params, func(p space.Param) bool {
		return p.Name == name || slices.ContainsFunc(p.Words, func(w string) bool { return name == p.Name+"_"+w })
	})
}
