// Package spec reads descriptions of what to tune that are not kgen's own kernels: a
// CUDA C kernel with parameters that are macros, constraints between them, and how it is
// launched and checked. It reads kgen's own form, docs/space.md, and the T1 form of BAT
// and Kernel Tuner.
package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
	"github.com/kgen-dev/kgen/kernels/space"
)

// Spec is a description. Its expressions are in the grammar of package space.
type Spec struct {
	Name    string
	Dir     string // of the file: other files are relative to it
	Source  string // file of CUDA C
	Kernel  string
	Flags   []string // of the compiler
	Sizes   space.Env
	Space   *space.Space
	Default []string // NAME=VALUE of a configuration to try first; may be empty

	Launch    Launch
	Arguments []string // as bench.ParseArgument reads them; {expression} stands for its value
	Tolerance numcheck.Tolerance
	Reference *Reference // nil: none but what the arguments want
	Blocks    int        // of a launch that the virtual machine runs, spread over the grid; 0: all

	// Unrunnable says why the space can be searched but not the kernel run; nil if it can.
	Unrunnable error
	// Text is the file as it was read.
	Text []byte
}

// Launch is how a kernel is launched, in expressions.
type Launch struct {
	Grid, Block []string // one to three
	Shared      string   // dynamic, bytes; "" is none
}

// Reference is a kernel that computes what is right, with the same arguments.
type Reference struct {
	Source  string // file of CUDA C
	Kernel  string
	Launch  Launch
	Defines []string // NAME=VALUE, macros of its source
}

// maxBytes bounds a description's file.
const maxBytes = 4 << 20

// Read reads a description.
func Read(file string) (*Spec, error) {
	text, err := userfile.Read(file, maxBytes)
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s.Dir, s.Text = filepath.Dir(file), text
	if s.Name == "" {
		s.Name = s.Kernel
	}
	sources := []string{s.Source}
	if s.Reference != nil {
		sources = append(sources, s.Reference.Source)
	}
	for _, source := range sources {
		if err := s.unlinked(source); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return s, nil
}

// Parse reads a description's text in either form.
func Parse(text []byte) (*Spec, error) {
	var keys map[string]json.RawMessage
	if err := decode(text, &keys, false); err != nil {
		return nil, err
	}
	if err := jsontext.Once(text); err != nil {
		return nil, fmt.Errorf("line %w", err)
	}
	if _, ok := keys["ConfigurationSpace"]; ok {
		return parseT1(text)
	}
	return parseOwn(text)
}

// Path is a file that the description names.
func (s *Spec) Path(file string) string { return filepath.Join(s.Dir, file) }

// within refuses a file outside the description's folder: workers get what is there and
// nothing else, and a description of somebody else's must not choose what is read.
func within(file string) error {
	if !filepath.IsLocal(file) {
		return fmt.Errorf("file %q: want one in the description's folder or below it", clip(file))
	}
	return nil
}

// unlinked refuses a file within the description's folder that is linked to one outside.
// A file that is not there is found so where it is read.
func (s *Spec) unlinked(file string) error {
	dir, err := filepath.EvalSymlinks(s.Path("."))
	if err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(s.Path(file))
	if err != nil {
		return nil
	}
	if rel, err := filepath.Rel(dir, real); err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("file %q: it is linked to one outside: want one in the description's folder or below it", clip(file))
	}
	return nil
}

// decode reads one JSON object; its errors name the line.
func decode(text []byte, into any, strict bool) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	switch {
	case err == nil:
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: text after the object's end", jsontext.LineAt(text, d.InputOffset()))
		}
		return nil
	case strings.HasPrefix(err.Error(), "json: unknown field"): // encoding/json has no type for it
		return unknownField(text, reflect.TypeOf(into), strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return fmt.Errorf("line %w", jsontext.Locate(text, err))
}

// unknownField says which fields an object has: the outermost, if the unknown one is its
// own, else some object within.
func unknownField(text []byte, t reflect.Type, quoted string) error {
	var object map[string]json.RawMessage
	name, err := strconv.Unquote(quoted)
	if err == nil && json.Unmarshal(text, &object) == nil {
		if _, own := object[name]; own {
			return fmt.Errorf("unknown field %s: want some of %s", quoted, strings.Join(fields(t), ", "))
		}
	}
	return fmt.Errorf("unknown field %s of an object within", quoted)
}

// fields are the members of an object.
func fields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			names = append(names, fields(t.Field(i).Type)...)
			continue
		}
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
