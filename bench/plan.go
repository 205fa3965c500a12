package bench

import (
	"context"
	"encoding/binary"

	"github.com/kgen-dev/kgen/codegen"
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
		l := Launch{Grid: [3]uint32{uint32(s.Grid), 1, 1}, Block: [3]uint32{uint32(s.Threads), 1, 1}, SharedBytes: int64(s.SharedBytes)}
		for _, a := range s.Args {
			l.Args = append(l.Args, planArg(a, memory))
		}
		if points != nil && points[i] != nil {
			for _, at := range points[i] {
				id, err := s.Block(at)
				if err != nil {
					return reports, err
				}
				l.Blocks = append(l.Blocks, [3]uint32{uint32(id), 0, 0})
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

func planArg(a codegen.PlanArg, memory []Buffer) Arg {
	if a.Memory >= 0 {
		return Pointer(memory[a.Memory])
	}
	b := binary.LittleEndian.AppendUint64(nil, a.Bits)
	return Arg(b[:a.Bytes])
}
