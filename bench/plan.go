package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// RunPlan launches a plan's steps in order and returns a report of each. memory has
// a buffer for each of the program's arguments (unused for scalars), then one for
// each workspace buffer. points, if not nil, limits each step to points of its tile
// space; nil points of a step run all of it. Of steps that an Overlapper runs together
// the first has the report, and the others an empty one.
func RunPlan(ctx context.Context, d Device, m *Module, p *codegen.Plan, memory []Buffer, points [][][]int) ([]*Report, error) {
	reports := make([]*Report, 0, len(p.Steps))
	for len(reports) < len(p.Steps) {
		first := len(reports)
		if p.Steps[first].Grid == 0 {
			reports = append(reports, &Report{})
			continue
		}
		n := together(d, p.Steps[first:])
		var kernels []string
		var launches []Launch
		for i := first; i < first+n; i++ {
			var at [][]int
			if points != nil && i >= p.Prologue {
				at = points[i-p.Prologue]
			}
			l, err := planLaunch(d, &p.Steps[i], memory, at)
			if err != nil {
				return reports, err
			}
			kernels, launches = append(kernels, p.Steps[i].Kernel), append(launches, l)
		}
		r, err := launchAll(ctx, d, m, kernels, launches)
		if err != nil {
			return reports, err // which names the kernel
		}
		reports = append(reports, r)
		for range n - 1 {
			reports = append(reports, &Report{})
		}
	}
	return reports, nil
}

// together is how many of the first steps are launched at once.
func together(d Device, steps []codegen.PlanStep) int {
	n := 1
	if _, ok := d.(Overlapper); ok {
		for n < len(steps) && steps[n].Early && steps[n].Grid > 0 {
			n++
		}
	}
	return n
}

func launchAll(ctx context.Context, d Device, m *Module, kernels []string, launches []Launch) (*Report, error) {
	if len(launches) == 1 {
		return d.Launch(ctx, m, kernels[0], launches[0])
	}
	return d.(Overlapper).LaunchAll(ctx, m, kernels, launches)
}

// planLaunch is a step's launch, limited to the given points of its tile space unless
// they are nil.
func planLaunch(d Device, s *codegen.PlanStep, memory []Buffer, points [][]int) (Launch, error) {
	l := Launch{Grid: [3]uint32{uint32(s.Grid), 1, 1}, Block: [3]uint32{uint32(s.Threads), 1, 1}, SharedBytes: int64(s.SharedBytes), Early: s.Early}
	for _, a := range s.Args {
		arg, err := planArg(d, a, memory)
		if err != nil {
			return l, fmt.Errorf("kernel %s: %w", s.Kernel, err)
		}
		l.Args = append(l.Args, arg)
	}
	for _, at := range points {
		id, err := s.Block(at)
		if err != nil {
			return l, err
		}
		if block := [3]uint32{uint32(id), 0, 0}; !slices.Contains(l.Blocks, block) {
			l.Blocks = append(l.Blocks, block)
		}
	}
	return l, nil
}

// PlanCase is the case of a plan's launches over memory: a buffer for each of the
// program's arguments (empty for scalars), then one for each workspace buffer.
func PlanCase(file string, text []byte, p *codegen.Plan, memory []CaseBuffer) *Case {
	c := &Case{File: file, PTXFile: file, PTX: text, Buffers: memory}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Grid == 0 {
			continue
		}
		l := CaseLaunch{Kernel: s.Kernel, Grid: [3]uint32{uint32(s.Grid), 1, 1}, Block: [3]uint32{uint32(s.Threads), 1, 1}, SharedBytes: int64(s.SharedBytes)}
		for _, a := range s.Args {
			arg := CaseArg{Buffer: a.Memory}
			switch {
			case a.Map != nil:
				arg.Map = PlanTensorMap(a.Map, 0)
			case a.Memory < 0:
				arg.Bytes = binary.LittleEndian.AppendUint64(nil, a.Bits)[:a.Bytes]
			}
			l.Args = append(l.Args, arg)
		}
		c.Launches = append(c.Launches, l)
	}
	return c
}

func planArg(d Device, a codegen.PlanArg, memory []Buffer) (Arg, error) {
	switch {
	case a.Map != nil:
		return d.TensorMap(PlanTensorMap(a.Map, memory[a.Memory].Address))
	case a.Memory >= 0:
		return Pointer(memory[a.Memory]), nil
	}
	b := binary.LittleEndian.AppendUint64(nil, a.Bits)
	return Arg(b[:a.Bytes]), nil
}

// mapTypes are the types of tensor maps by that of elements.
var mapTypes = map[string]ptx.Type{"f16": ptx.F16, "bf16": ptx.BF16, "f32": ptx.F32, "e4m3": ptx.U8, "e5m2": ptx.U8, "i8": ptx.U8}

// PlanTensorMap is a plan's tensor map at an address.
func PlanTensorMap(m *codegen.TensorMap, address uint64) *TensorMap {
	t := &TensorMap{Type: mapTypes[m.Elem.String()], Address: address, Swizzle: m.Swizzle}
	for i, n := range m.Dims {
		t.Dims = append(t.Dims, uint64(n))
		t.Box = append(t.Box, uint32(m.Box[i]))
	}
	for _, n := range m.Strides {
		t.Strides = append(t.Strides, uint64(n))
	}
	return t
}
