// Package launchfile writes down how to launch a compiled program's kernels, for programs
// that know nothing of kgen: grids, parameters, tensor maps, memory. docs/launch.md is the
// form's documentation.
package launchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/internal/jsontext"
	"github.com/kgen-dev/kgen/internal/userfile"
)

// Version is the form's. It changes when a reader of the one before would be misled.
const Version = 1

// File is a launch description: for the sizes of one problem.
type File struct {
	Version  int             `json:"version"`
	Kgen     string          `json:"kgen"`   // version of the program that wrote it
	Family   string          `json:"family"` // "gemm"
	Problem  json.RawMessage `json:"problem"`
	Config   json.RawMessage `json:"config"`
	GPU      GPU             `json:"gpu"`
	Compiler string          `json:"compiler,omitempty"` // of the cubin
	Files    Files           `json:"files"`
	Time     *Time           `json:"time,omitempty"` // of all launches

	Tensors   []Tensor    `json:"tensors"`
	Workspace []Workspace `json:"workspace"`
	Launches  []Launch    `json:"launches"` // in order, on one stream
}

// GPU is what the kernels are for.
type GPU struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Arch string `json:"arch"` // target of PTX and cubin: "sm_90a"
}

// Files are those that hold the kernels, relative to the description's folder; "" is none.
type Files struct {
	CUDA  string `json:"cuda,omitempty"`
	PTX   string `json:"ptx,omitempty"`
	Cubin string `json:"cubin,omitempty"`
}

// Time is a time with its origin.
type Time struct {
	US         float64          `json:"us"`
	Provenance bench.Provenance `json:"provenance"`
}

// Tensor is memory that the caller has.
type Tensor struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"` // of elements: "bf16"
	Dims    []int64 `json:"dims"`
	Strides []int64 `json:"strides"` // in elements
	Bytes   int64   `json:"bytes"`   // from the first element to the end of the last, gaps included
	Align   int     `json:"align"`   // bytes that the address must be a multiple of
	Written bool    `json:"written"` // an output; else it is only read
}

// Workspace is memory that the launches pass results in: its content means nothing before
// the first and after the last.
type Workspace struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	Align int    `json:"align"`
	Zero  bool   `json:"zero"` // it must be zero before every run
}

// Launch is one kernel's.
type Launch struct {
	Kernel  string   `json:"kernel"`
	Grid    [3]int64 `json:"grid"` // in blocks
	Block   [3]int64 `json:"block"`
	Cluster [3]int64 `json:"cluster"` // compiled into the kernel

	// DynamicShared is what the launch asks for. MaxDynamicShared, where it is more than
	// 48 KiB, is the same: what the kernel's attribute must be set to before.
	DynamicShared    int64 `json:"dynamic_shared_bytes"`
	MaxDynamicShared int64 `json:"max_dynamic_shared_bytes,omitempty"`

	// Early says that the launch may have the attribute of programmatic stream serialization.
	Early bool `json:"programmatic_stream_serialization"`

	Tiles    []string `json:"tiles"`    // formulas over sizes, whose product the grid is at most
	Requires []string `json:"requires"` // what the kernel takes for granted
	Params   []Param  `json:"params"`   // in order
}

// The kinds of parameters.
const (
	Pointer   = "pointer"    // address of the first element of a tensor or workspace
	TensorMap = "tensor_map" // 128 bytes by value
	Size      = "size"       // of a dimension, in elements
	Stride    = "stride"     // of a dimension, in elements
	Scalar    = "scalar"
)

// Param is a parameter of a kernel.
type Param struct {
	Name         string          `json:"name"`
	Kind         string          `json:"kind"`
	Type         string          `json:"type"` // u64 of a pointer, i32, i64, f32, ...; CUtensorMap
	Bytes        int             `json:"bytes"`
	Of           string          `json:"of,omitempty"`    // tensor or workspace
	Dim          *int            `json:"dim,omitempty"`   // of a size or stride
	Value        json.RawMessage `json:"value,omitempty"` // a number, or "NaN", "Infinity" or "-Infinity"
	GridConstant bool            `json:"grid_constant,omitempty"`
	Map          *Map            `json:"map,omitempty"`
}

// Map is what cuTensorMapEncodeTiled takes beside the address; numbers are innermost first.
type Map struct {
	Type           string   `json:"type"`
	Dims           []uint64 `json:"dims"`    // in elements
	Strides        []uint64 `json:"strides"` // in bytes, of all dimensions but the innermost
	Box            []uint32 `json:"box"`     // in elements
	ElementStrides []uint32 `json:"element_strides"`
	Swizzle        int      `json:"swizzle"`      // bytes of a swizzled row: 0, 32, 64 or 128
	Interleave     int      `json:"interleave"`   // 0: none
	Fill           string   `json:"fill"`         // of elements outside: "zero"
	L2Promotion    int      `json:"l2_promotion"` // bytes
}

// Text is the description as JSON.
func (f *File) Text() ([]byte, error) { return indent(f) }

// numbers is a list of numbers that is a line each.
var numbers = regexp.MustCompile(`\[\s+-?\d+(,\s+-?\d+)*\s+\]`)

// indent is a value as JSON, with lists of numbers on a line.
func indent(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return numbers.ReplaceAllFunc(b.Bytes(), func(list []byte) []byte {
		joined := bytes.Join(bytes.Fields(list), []byte(" "))
		joined = bytes.Replace(joined, []byte("[ "), []byte("["), 1)
		return bytes.Replace(joined, []byte(" ]"), []byte("]"), 1)
	}), nil
}

// maxBytes bounds descriptions: one of a family has some kilobytes.
const maxBytes = 1 << 20

// Read reads a description. The error is a *bench.InputError.
func Read(name string) (*File, error) {
	text, err := userfile.Read(name, maxBytes)
	if err != nil {
		return nil, &bench.InputError{Err: err}
	}
	f := new(File)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, &bench.InputError{Err: fmt.Errorf("%s:%w", name, jsontext.Locate(text, err))}
	}
	if _, _, err := jsontext.Members(text); err != nil { // a key twice, or text after the end
		return nil, &bench.InputError{Err: fmt.Errorf("%s:%w", name, err)}
	}
	if err := f.check(); err != nil {
		return nil, &bench.InputError{Err: fmt.Errorf("%s: %w", name, err)}
	}
	return f, nil
}

func (f *File) check() error {
	if f.Version != Version {
		return fmt.Errorf("version %d: want %d, which this kgen reads", f.Version, Version)
	}
	if len(f.Launches) == 0 {
		return errors.New("no launches")
	}
	for _, l := range f.Launches {
		for i := range l.Params {
			if err := f.checkParam(&l.Params[i]); err != nil {
				return fmt.Errorf("kernel %s: parameter %s: %w", l.Kernel, l.Params[i].Name, err)
			}
		}
	}
	return nil
}

func (f *File) checkParam(p *Param) error {
	switch p.Kind {
	case Size, Stride, Scalar:
		if len(p.Value) == 0 {
			return errors.New("no value")
		}
		return nil
	case Pointer, TensorMap:
		named := slices.ContainsFunc(f.Tensors, func(t Tensor) bool { return t.Name == p.Of }) ||
			slices.ContainsFunc(f.Workspace, func(w Workspace) bool { return w.Name == p.Of })
		if !named {
			return fmt.Errorf("of %q: no such tensor or workspace", p.Of)
		}
		if p.Kind == TensorMap && p.Map == nil {
			return errors.New("no map")
		}
		return nil
	}
	return fmt.Errorf("kind %q: want %s, %s, %s, %s or %s", p.Kind, Pointer, TensorMap, Size, Stride, Scalar)
}
