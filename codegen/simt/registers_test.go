package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// registerMachine runs a kernel as the printers write it: values live in the
// registers they share, and edges copy.
type registerMachine struct {
	machine
	k    *Kernel
	r    *Registers
	file []uint64
}

func (m *registerMachine) run(k *Kernel, r *Registers) error {
	m.k, m.r, m.file = k, r, make([]uint64, len(r.First))
	for i := range m.file {
		m.file[i] = 0xdead_beef_dead_beef
	}
	if err := m.machine.run(&Kernel{Inputs: k.Inputs, Body: &Block{}}); err != nil { // the inputs alone
		return err
	}
	for _, v := range k.Inputs {
		m.put(v, m.regs[v])
	}
	m.block(k.Body)
	return nil
}

func (m *registerMachine) value(v *Value) uint64 {
	if m.r.Of[v.ID] < 0 {
		return uint64(v.Def.Imm) & mask(v.Type)
	}
	return m.file[m.r.Of[v.ID]] & mask(v.Type)
}

func (m *registerMachine) put(v *Value, x uint64) { m.file[m.r.Of[v.ID]] = x & mask(v.Type) }

func (m *registerMachine) copies(cs []Copy) {
	save := func(reg int32) int32 {
		m.file = append(m.file, m.file[reg])
		return int32(len(m.file) - 1)
	}
	m.r.Sequence(cs, save, func(to, from int32, v *Value) {
		if from < 0 {
			m.file[to] = uint64(v.Def.Imm) & mask(v.Type)
		} else {
			m.file[to] = m.file[from]
		}
	})
}

func (m *registerMachine) block(b *Block) {
	for _, in := range b.Instrs {
		m.instr(in)
	}
}

func (m *registerMachine) instr(in *Instr) {
	e := m.r.Edges[in]
	switch in.Op {
	case OpFor:
		hi, step := in.Args[1], in.Args[2]
		i := in.Body.Params[0]
		m.copies(e.Enter)
		for int32(m.value(i)) < int32(m.value(hi)) {
			m.block(in.Body)
			m.copies(e.Next)
			m.put(i, m.value(i)+m.value(step))
		}
	case OpIf:
		if m.value(in.Args[0]) != 0 {
			m.block(in.Body)
			m.copies(e.Then)
		} else if in.Else != nil {
			m.block(in.Else)
			m.copies(e.Else)
		}
	case OpBitcast:
		if x := m.value(in.Args[0]); in.Args[0].IsConst() || m.r.Of[in.Args[0].ID] != m.r.Of[in.Results[0].ID] {
			m.put(in.Results[0], x)
		}
	default:
		// The plain machine executes it, with operands out of the registers.
		for _, x := range in.Args {
			if !x.IsConst() {
				m.regs[x] = m.value(x)
			}
		}
		if in.Guard != nil && !in.Guard.IsConst() {
			m.regs[in.Guard] = m.value(in.Guard)
		}
		if in.Op == OpLd && in.Guard != nil { // printers write the defaults first
			for i, r := range in.Results {
				var d uint64
				if len(in.Args) > 1 {
					d = m.value(in.Args[1+i])
				}
				m.put(r, d)
			}
			for _, x := range in.Args[:1] {
				if !x.IsConst() {
					m.regs[x] = m.value(x)
				}
			}
		}
		m.machine.instr(in)
		for _, r := range in.Results {
			m.put(r, m.regs[r])
		}
	}
}

// TestRegistersKeepMeaning runs random kernels in SSA form and with shared
// registers.
func TestRegistersKeepMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := randomKernel(t, false)
		if rapid.Bool().Draw(t, "clean") {
			Clean(k)
		}
		if rapid.Bool().Draw(t, "names") { // groups share registers in C
			for i := range k.NumValues() {
				v := k.Value(int32(i))
				if i%3 == 0 && !v.Floating() {
					v.Elem("g", i%2)
				}
			}
		}
		for _, style := range []Style{ForPTX, ForC} {
			r := AssignRegisters(k, style)
			for _, tid := range []uint64{3, 40} {
				want := machine{global: input(), tid: tid, cta: 9, params: []uint64{0, inBytes, 33, 1 << 35}}
				require.NoError(t, want.run(k))
				got := registerMachine{machine: machine{global: input(), tid: tid, cta: 9, params: want.params}}
				require.NoError(t, got.run(k, r))
				require.Equal(t, want.global, got.global, "style %d of\n%s", style, k)
			}
		}
	})
}

func input() []byte {
	b := make([]byte, inBytes+outBytes)
	for i := range b {
		b[i] = byte(i*i*31 + i*7)
	}
	return b
}
