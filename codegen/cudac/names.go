package cudac

import (
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/codegen/simt"
)

// Names of variables. A value's hint is its variable's name; values of a named
// group are elements of an array; what has no hint gets a letter for its type
// and a number.

// reserved are names that variables must not have.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`u8 u16 u32 u64 i64 smem smem_base TensorMap asm auto bool break case char class const continue default
		delete do double else enum extern float e for goto half if inline int long new operator private public return short signed sizeof
		static struct switch template this true false typedef union unsigned using virtual void volatile while threadIdx blockIdx blockDim
		gridDim warpSize min max abs fmaf fmaxf fminf fabsf exp log sin cos sqrt pow y0 y1 j0 j1 jn yn main`) {
		m[w] = true
	}
	return m
}()

// hint is what a register's variable should be called.
type hint struct {
	name string
	sub  int32
}

// hints picks for each register the hint of a loop's parameter, or else the
// first there is.
func (p *printer) hints() []hint {
	hs := make([]hint, len(p.regs.First))
	strong := make([]bool, len(hs))
	for i := range p.k.NumValues() {
		v := p.k.Value(int32(i))
		if v.Name == "" || p.regs.Of[i] < 0 {
			continue
		}
		r := p.regs.Of[i]
		if h := &hs[r]; h.name == "" || v.Block != nil && !strong[r] {
			*h = hint{v.Name, v.Sub}
			strong[r] = v.Block != nil
		}
	}
	return hs
}

type group struct {
	name string
	typ  string
	inst int
}

func (p *printer) name() {
	hs := p.hints()
	p.names = make([]string, len(hs))
	taken := map[string]bool{}
	for i := range p.k.Params {
		taken[p.k.Params[i].Name] = true
	}
	p.reserveHelpers(taken)
	p.nameInputs(taken)
	copies := map[string]int{} // of an element: how many arrays hold it
	arrays := map[group]string{}
	for r, h := range hs {
		if p.names[r] != "" || h.name == "" {
			continue
		}
		if h.sub < 0 {
			p.names[r] = unique(taken, clean(h.name))
			continue
		}
		typ := ctype(p.regs.First[r].Type)
		element := fmt.Sprintf("%s/%s/%d", h.name, typ, h.sub)
		g := group{h.name, typ, copies[element]}
		copies[element]++
		if arrays[g] == "" {
			arrays[g] = unique(taken, clean(h.name))
		}
		p.names[r] = fmt.Sprintf("%s[%d]", arrays[g], h.sub)
		p.array[r] = true
	}
	p.nameRest(taken)
}

// reserveHelpers keeps variables from hiding the helpers the kernel may call.
func (p *printer) reserveHelpers(taken map[string]bool) {
	seen := map[simt.Op]string{}
	simt.Walk(p.k.Body, func(in *simt.Instr) {
		if in.Body != nil {
			return
		}
		op := in.Opcode()
		if seen[in.Op] == op {
			return
		}
		seen[in.Op] = op
		if in.Op.Specific() {
			return
		}
		n := shortName(in, op) + typeWord(in)
		for _, suffix := range []string{"", "_if", "_if_else", "_part", "_part_if"} {
			taken[n+suffix] = true
		}
	})
}

// nameInputs names parameters and special registers.
func (p *printer) nameInputs(taken map[string]bool) {
	for _, v := range p.k.Inputs {
		r := p.regs.Reg(v)
		switch in := v.Def; in.Op {
		case simt.OpParam:
			a := &p.k.Params[in.Imm]
			p.names[r] = a.Name
			if a.Type == simt.Ptr {
				p.names[r] = unique(taken, a.Name+"_at")
			}
			p.signed[r] = a.Type == simt.I32
		case simt.OpSpecial:
			p.names[r] = unique(taken, strings.NewReplacer("tid.x", "tid", "ctaid.", "block_", "nctaid.", "blocks_", "laneid", "lane").Replace(in.Special.String()))
		case simt.OpSharedBase:
			p.names[r] = "smem_base"
		}
	}
}

func (p *printer) nameRest(taken map[string]bool) {
	next := map[string]int{}
	for r := range p.names {
		if p.names[r] != "" || p.inline[p.regs.First[r].ID] {
			continue
		}
		letter := letterOf(p.regs.First[r].Type)
		next[letter]++
		p.names[r] = unique(taken, fmt.Sprintf("%s%d", letter, next[letter]))
	}
}

func letterOf(t simt.Type) string {
	switch t {
	case simt.Pred:
		return "p"
	case simt.F32:
		return "f"
	case simt.F64:
		return "d"
	case simt.Ptr:
		return "at"
	case simt.I64:
		return "n"
	case simt.F16x2, simt.BF16x2, simt.F16, simt.BF16, simt.I16:
		return "h"
	}
	return "r"
}

// clean makes a hint an identifier.
func clean(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' {
		return "v" + string(b)
	}
	return string(b)
}

func unique(taken map[string]bool, name string) string {
	n := name
	for i := 1; taken[n] || reserved[n]; i++ {
		n = fmt.Sprintf("%s_%d", name, i)
	}
	taken[n] = true
	return n
}

// arrays declares the arrays at the kernel's top.
func (p *printer) arrays() {
	size := map[string]int{}
	var order []string
	types := map[string]string{}
	for r, n := range p.names {
		if !p.array[r] {
			continue
		}
		base, i := splitElement(n)
		if _, ok := size[base]; !ok {
			order = append(order, base)
			types[base] = ctype(p.regs.First[r].Type)
		}
		size[base] = max(size[base], i+1)
		p.known[r] = true
	}
	for _, base := range order {
		p.line("%s %s[%d];", types[base], base, size[base])
	}
	p.sizes = size
}
