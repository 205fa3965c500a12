package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// compileFlags are what NVRTC is told for a file of CUDA C.
type compileFlags struct {
	include []string // folders
	define  []string // NAME or NAME=VALUE
}

func (f *compileFlags) declare(c *cobra.Command, of string) {
	c.Flags().StringArrayVarP(&f.include, "include", "I", nil, "`DIR` in which "+of+" finds what it includes; may be given again")
	c.Flags().StringArrayVarP(&f.define, "define", "D", nil, "`NAME[=VALUE]` of a macro for "+of+"; may be given again")
}

// given tells whether there is any.
func (f *compileFlags) given() bool { return len(f.include)+len(f.define) > 0 }

// macroName matches a macro's name.
var macroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// folders are the absolute paths of the folders.
func (f *compileFlags) folders() ([]string, error) {
	var out []string
	for _, dir := range f.include {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, usagef("-I %s: want a folder that is there", dir)
		}
		full, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, full)
	}
	return out, nil
}

// nvrtc are the flags as NVRTC takes them.
func (f *compileFlags) nvrtc() ([]string, error) {
	dirs, err := f.folders()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range dirs {
		out = append(out, "-I"+dir)
	}
	for _, d := range f.define {
		if name, _, _ := strings.Cut(d, "="); !macroName.MatchString(name) {
			return nil, usage(fmt.Errorf("-D %s: want NAME or NAME=VALUE", d))
		}
		out = append(out, "-D"+d)
	}
	return out, nil
}

// words are the flags as kgen takes them.
func (f *compileFlags) words() []string {
	var out []string
	for _, dir := range f.include {
		out = append(out, "-I", dir)
	}
	for _, d := range f.define {
		out = append(out, "-D", d)
	}
	return out
}
