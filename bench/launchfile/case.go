package launchfile

import (
	"fmt"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
)

// caseText is a case of kgen run as bench.ReadCase reads it.
type caseText struct {
	PTX       string             `json:"ptx"`
	Buffers   []map[string]any   `json:"buffers"`
	Launches  []caseLaunch       `json:"launches"`
	Tolerance numcheck.Tolerance `json:"tolerance"`
	Fault     *string            `json:"fault"`
	Note      string             `json:"note"`
}

type caseLaunch struct {
	Kernel        string           `json:"kernel"`
	Grid          [3]int64         `json:"grid"`
	Block         [3]int64         `json:"block"`
	Cluster       [3]int64         `json:"cluster"`
	DynamicShared int64            `json:"dynamic_shared"`
	Args          []map[string]any `json:"args"`
}

// Case is the text of a case for kgen run that makes the launches over PTX: each tensor
// that is read comes from NAME.npy, a line of elements with the gaps between rows; what is
// written, and workspace, holds nothing before. ptx is relative to the case, which is to
// lie in dir. The error says what no case can hold.
func (f *File) Case(ptx, dir string) ([]byte, error) {
	bare, err := f.caseText(ptx, false)
	if err != nil {
		return nil, err
	}
	if _, err := bench.ParseCase(bare, dir); err != nil { // as it is without the arrays, which are to come
		return nil, err
	}
	return f.caseText(ptx, true)
}

// caseText writes a case, in which every buffer is a count of elements unless it is to have
// its array.
func (f *File) caseText(ptx string, arrays bool) ([]byte, error) {
	c := caseText{PTX: ptx, Note: "To fill in: NAME.npy (numpy.save) of each tensor that is read, all elements in a line; \"want\" and the tolerance of those to compare."}
	for _, t := range f.Tensors {
		b, err := buffer(t.Name, t.Type, t.Bytes, t.Align, arrays && !t.Written)
		if err != nil {
			return nil, err
		}
		c.Buffers = append(c.Buffers, b)
	}
	for _, w := range f.Workspace {
		b, err := buffer(w.Name, w.Type, w.Bytes, w.Align, arrays && w.Zero)
		if err != nil {
			return nil, err
		}
		c.Buffers = append(c.Buffers, b)
	}
	for _, l := range f.Launches {
		out := caseLaunch{Kernel: l.Kernel, Grid: l.Grid, Block: l.Block, Cluster: l.Cluster, DynamicShared: l.DynamicShared, Args: []map[string]any{}}
		for i := range l.Params {
			out.Args = append(out.Args, l.Params[i].argument())
		}
		c.Launches = append(c.Launches, out)
	}
	return indent(&c)
}

// buffer is one from a file, or one that was never written.
func buffer(name, kind string, size int64, align int, file bool) (map[string]any, error) {
	t, err := numcheck.ParseType(kind)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	b := map[string]any{"name": name, "type": kind, "align": align}
	if file {
		b["buffer"] = name + ".npy"
	} else {
		b["uninitialised"] = size / int64(t.Size())
	}
	return b, nil
}

// argument is the parameter as a case passes it.
func (p *Param) argument() map[string]any {
	switch p.Kind {
	case Pointer:
		return map[string]any{"ref": p.Of}
	case TensorMap:
		m := p.Map
		return map[string]any{
			"tensor_map": p.Of, "type": m.Type, "dims": m.Dims, "strides": m.Strides, "box": m.Box, "element_strides": m.ElementStrides,
			"swizzle": m.Swizzle, "interleave": m.Interleave, "fill": m.Fill,
		}
	}
	return map[string]any{p.Type: p.Value}
}
