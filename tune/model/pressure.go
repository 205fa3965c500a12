package model

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
)

const (
	// ordered is the share of the registers that live at a time in the program's order
	// which are left once ptxas has moved instructions together: 0.66 to 0.75 for
	// attention, 0.7 to 1 for matrix products (ptxas 13.0).
	ordered = 0.75

	// spillBytes is what each register beyond the limit costs in bytes stored and
	// reloaded.
	spillBytes = 8
)

// estimate guesses what a compiler would make of a kernel.
func estimate(g *target.GPU, k *simt.Kernel) (registers, spill int) {
	l := g.Limits()
	most := min(l.RegistersPerThread, l.RegistersPerSM/max(k.Threads, 1)/8*8)
	registers = int(ordered * float64(Pressure(k)))
	if more := moreRegisters(k); more > 0 {
		return most, spillBytes * max(0, registers-more)
	}
	if registers > most {
		return most, spillBytes * (registers - most)
	}
	return max(registers, 16), 0
}

// moreRegisters is how many registers a thread raises itself to, 0 if to none.
func moreRegisters(k *simt.Kernel) int {
	more := 0
	simt.Walk(k.Body, func(in *simt.Instr) {
		if in.Op == simt.OpMaxRegisters {
			more = max(more, int(in.Imm))
		}
	})
	return more
}

// Pressure returns the most 32-bit values that live at a time in a thread of a kernel,
// in the order of the program.
func Pressure(k *simt.Kernel) int {
	p := pressure{live: make([]bool, k.NumValues())}
	p.block(k.Body)
	return p.most
}

type pressure struct {
	live      []bool
	now, most int
}

func registers(t simt.Type) int {
	switch t.Bits() {
	case 1:
		return 0
	case 64:
		return 2
	}
	return 1
}

func (p *pressure) use(v *simt.Value) {
	if v != nil && !v.IsConst() && !p.live[v.ID] {
		p.live[v.ID] = true
		p.now += registers(v.Type)
		p.most = max(p.most, p.now)
	}
}

func (p *pressure) define(v *simt.Value) {
	if p.live[v.ID] {
		p.live[v.ID] = false
		p.now -= registers(v.Type)
	}
}

// block goes through a block from its end.
func (p *pressure) block(b *simt.Block) {
	for _, v := range b.Yield {
		p.use(v)
	}
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		for _, r := range in.Results {
			p.define(r)
		}
		if in.Body != nil {
			p.captured(in)
			p.block(in.Body)
			if in.Else != nil {
				p.block(in.Else)
			}
		}
		p.use(in.Guard)
		for _, a := range in.Args {
			p.use(a)
		}
	}
	for _, v := range b.Params {
		p.define(v)
	}
}

// captured makes what a loop uses from outside live throughout it.
func (p *pressure) captured(in *simt.Instr) {
	if in.Op == simt.OpIf {
		return
	}
	inside := map[*simt.Value]bool{}
	var walk func(*simt.Block)
	walk = func(b *simt.Block) {
		for _, v := range b.Params {
			inside[v] = true
		}
		for _, in := range b.Instrs {
			for _, a := range in.Args {
				if !inside[a] {
					p.use(a)
				}
			}
			if in.Guard != nil && !inside[in.Guard] {
				p.use(in.Guard)
			}
			for _, r := range in.Results {
				inside[r] = true
			}
			if in.Body != nil {
				walk(in.Body)
			}
			if in.Else != nil {
				walk(in.Else)
			}
		}
		for _, v := range b.Yield {
			if !inside[v] {
				p.use(v)
			}
		}
	}
	walk(in.Body)
}
