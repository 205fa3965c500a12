package codegen

import (
	"fmt"
	"slices"

	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// machine is what lowering asks of the target's instruction set.
type machine struct {
	sm     int  // compute capability times ten
	wgmma  bool // has the warpgroup's matrix instruction
	maps   bool // copies by tensor maps
	shared int  // bytes of shared memory that a block may have

	waits, lets bool // the launch before may still run, the next one may start early
	changing    bool // what the launch before does may change what the kernel reads

	reread []int // parameters that a later launch of the program is passed too

	made *ir.Value // the parameter of tensor maps that a prologue makes; nil: each is a parameter

	notes []string // on what a kernel does without
}

// note adds what a kernel does without, once.
func (m *machine) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
}

// tensorForm is a tensor-core instruction: its tile and the width of its operands.
type tensorForm struct {
	m, n, k int
	bits    int
	mma     simt.Mma
}

// tensorForm picks the instruction for a dot; ok is false where plain arithmetic
// has to do.
func (m *machine) tensorForm(o *ir.Op) (form tensorForm, ok bool) {
	x, y, acc := o.Args[0].Type, o.Args[1].Type, o.Args[2].Type
	mma, ok := formFor(x.Elem, y.Elem, acc.Elem, o.Precision)
	if !ok {
		return tensorForm{}, false
	}
	whole := mma.Info().K // of a fragment, which an instruction of half the depth takes in two
	if half, ok := halfDepth[mma]; ok && m.sm < mma.Info().MinSM {
		mma = half
	}
	i := mma.Info()
	if m.sm < i.MinSM {
		return tensorForm{}, false
	}
	form = tensorForm{m: i.M, n: i.N, k: i.K, bits: x.Elem.Bits(), mma: mma}
	depth := x.Shape[1]
	return form, x.Shape[0]%form.m == 0 && y.Shape[1]%form.n == 0 && depth%whole == 0 && depth/scaleGroups(o)%form.k == 0
}

// halfDepth are the instructions that older GPUs have for others.
var halfDepth = map[simt.Mma]simt.Mma{
	simt.MmaM16N8K16F16:       simt.MmaM16N8K8F16,
	simt.MmaM16N8K16F16AccF16: simt.MmaM16N8K8F16AccF16,
}

// formFor is the instruction that multiplies x by y into acc.
func formFor(x, y, acc ir.Elem, p ir.Precision) (simt.Mma, bool) {
	switch {
	case x != y:
		return 0, false
	case x == ir.F16 && acc == ir.F16:
		return simt.MmaM16N8K16F16AccF16, true
	case x == ir.F16:
		return simt.MmaM16N8K16F16, true
	case x == ir.BF16:
		return simt.MmaM16N8K16BF16, true
	case x == ir.F32 && p == ir.TF32:
		return simt.MmaM16N8K8TF32, true
	case x == ir.I8:
		return simt.MmaM16N8K32S8, true
	case x == ir.E4M3:
		return simt.MmaM16N8K32E4M3, true
	case x == ir.E5M2:
		return simt.MmaM16N8K32E5M2, true
	}
	return 0, false
}

// scaleGroups is in how many parts of K a dot's operands are scaled; 1 without scales.
func scaleGroups(o *ir.Op) int {
	if s := o.Operand("scale_x"); s != nil {
		return s.Type.Shape[1]
	}
	if s := o.Operand("scale_y"); s != nil {
		return s.Type.Shape[0]
	}
	return 1
}

// multiplied is the type that operands of a dot are converted to before they are
// multiplied: small floats that no instruction takes are values of f16, i4 of i8.
func (m *machine) multiplied(o *ir.Op) ir.Elem {
	x := o.Args[0].Type.Elem
	if _, ok := m.tensorForm(o); ok {
		return x
	}
	switch {
	case x == ir.I4:
		return ir.I8
	case x.IsFloat() && x.Bits() <= 8:
		return ir.F16
	}
	return x
}
