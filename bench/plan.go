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
// space; nil points of a step run all of it.
func RunPlan(ctx context.Context, d Device, m *Module, p *codegen.Plan, memory []Buffer, points [][][]int) ([]*Report, error) {
	var reports []*Report
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Grid == 0 {
			reports = append(reports, &Report{})
			continue
		}
		l := Launch{Grid: [3]uint32{uint32(s.Grid), 1, 1}, Block: [3]uint32{uint32(s.Threads), 1, 1}, SharedBytes: int64(s.SharedBytes), Early: s.Early}
		for _, a := range s.Args {
			arg, err := planArg(d, a, memory)
			if err != nil {
				return reports, fmt.Errorf("kernel %s: %w", s.Kernel, err)
			}
			l.Args = append(l.Args, arg)
		}
		if points != nil && points[i] != nil {
			for _, at := range points[i] {
				id, err := s.Block(at)
				if err != nil {
					return reports, err
				}
				if block := [3]uint32{uint32(id), 0, 0}; !slices.Contains(l.Blocks, block) {
					l.Blocks = append(l.Blocks, block)
				}
			}
		}
		r, err := d.Launch(ctx, m, s.Kernel, l)
		if err != nil {
			return reports, err // which names the kernel
		}
		reports = append(reports, r)
	}
	return reports, nil
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
				arg.Map = tensorMap(a.Map, 0)
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
		return d.TensorMap(tensorMap(a.Map, memory[a.Memory].Address))
	case a.Memory >= 0:
		return Pointer(memory[a.Memory]), nil
	}
	b := binary.LittleEndian.AppendUint64(nil, a.Bits)
	return Arg(b[:a.Bytes]), nil
}

// mapTypes are the types of tensor maps by that of elements.
var mapTypes = map[string]ptx.Type{"f16": ptx.F16, "bf16": ptx.BF16, "f32": ptx.F32, "e4m3": ptx.U8, "e5m2": ptx.U8, "i8": ptx.U8}

func tensorMap(m *codegen.TensorMap, address uint64) *TensorMap {
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
