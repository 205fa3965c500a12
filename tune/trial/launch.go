package trial

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/launchfile"
	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// bufferAlign is what buffers have that no one asked an alignment for, in bytes: on the
// virtual machine, and of cudaMalloc at least.
const bufferAlign = 256

// describe writes down how a compiled point is launched, with the sizes and arguments of
// the description: a tensor for each buffer, called arg0, arg1, ... by its place. Which of
// them are written nobody knows of a kernel that is not ours: those that hold nothing
// before are said to be. Files, time and kgen's version are left to the caller.
func (k *Kernel) describe(point []int, c *compiled, l *bench.CaseLaunch) (*launchfile.File, error) {
	s := k.Spec
	major, minor := k.Compiler.Version()
	f := &launchfile.File{
		Version: launchfile.Version, Family: s.Name, Compiler: fmt.Sprintf("NVRTC %d.%d", major, minor),
		GPU:     launchfile.GPU{ID: s.GPU.ID, Name: s.GPU.Name, Arch: s.GPU.Arch()},
		Tensors: []launchfile.Tensor{}, Workspace: []launchfile.Workspace{},
	}
	var err error
	if f.Problem, err = json.Marshal(s.Sizes); err != nil {
		return nil, err
	}
	if f.Config, err = json.Marshal(s.Space.At(point)); err != nil {
		return nil, err
	}
	out := launchfile.Launch{
		Kernel: c.kernel.Name, Grid: wide(l.Grid), Block: wide(l.Block), DynamicShared: l.SharedBytes,
		Tiles: []string{}, Requires: []string{}, Params: []launchfile.Param{},
	}
	if out.DynamicShared > launchfile.FreeShared {
		out.MaxDynamicShared = out.DynamicShared
	}
	tree, err := ptx.Load(k.Spec.Source, c.ptx)
	if err != nil {
		return nil, err
	}
	called, err := bench.DescribeModule(tree).Kernel(c.kernel.Name)
	if err != nil {
		return nil, err
	}
	out.Cluster = wide(called.ReqCluster)
	buffers, err := s.Buffers(k.Seed)
	if err != nil {
		return nil, err
	}
	values, err := s.Values(point, buffers)
	if err != nil {
		return nil, err
	}
	for i, a := range buffers {
		name := fmt.Sprintf("arg%d", i)
		if a.Buffer != nil {
			f.Tensors = append(f.Tensors, tensor(name, a.Buffer))
			out.Params = append(out.Params, launchfile.Param{Name: name, Kind: launchfile.Pointer, Type: "u64", Bytes: 8, Of: name})
			continue
		}
		text, err := valueText(&values[i])
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		out.Params = append(out.Params, launchfile.Param{Name: name, Kind: launchfile.Scalar, Type: values[i].Kind, Bytes: len(values[i].Bytes), Value: text})
	}
	f.Launches = []launchfile.Launch{out}
	return f, nil
}

// wide is extents, 1 where there is none.
func wide(e [3]uint32) (out [3]int64) {
	for i, n := range e {
		out[i] = max(1, int64(n))
	}
	return out
}

// tensor is a buffer as a dense tensor.
func tensor(name string, b *bench.CaseBuffer) launchfile.Tensor {
	t := launchfile.Tensor{
		Name: name, Type: b.Type.String(), Dims: slices.Clone(b.Shape), Strides: make([]int64, len(b.Shape)),
		Bytes: b.Size(), Align: bufferAlign, Written: b.Data == nil,
	}
	stride := int64(1)
	for i := len(t.Dims) - 1; i >= 0; i-- {
		t.Strides[i] = stride
		stride *= t.Dims[i]
	}
	return t
}

// valueText is a value as JSON: a number, or the digits of bytes.
func valueText(a *bench.CaseArg) (json.RawMessage, error) {
	if a.Kind == "bytes" {
		return json.Marshal(hex.EncodeToString(a.Bytes))
	}
	t, err := numcheck.ParseType(a.Kind)
	if err != nil {
		return nil, err
	}
	return json.Marshal(t.At(a.Bytes, 0))
}
