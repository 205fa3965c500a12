package codegen

import (
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/ir"
)

// machine is what lowering asks of the target's instruction set.
type machine struct {
	sm int // compute capability times ten
}

// tensorForm is a tensor-core instruction: its tile and the width of its operands.
type tensorForm struct {
	m, n, k int
	bits    int
	mma     simt.Mma
}

// tensorForm picks the instruction for a dot; ok is false where plain arithmetic
// has to do.
func (m *machine) tensorForm(o *ir.Op) (tensorForm, bool) {
	x, y := o.Args[0].Type, o.Args[1].Type
	f, ok := m.formFor(x.Elem, o)
	if !ok || x.Elem != y.Elem || x.Shape[0]%f.m != 0 || x.Shape[1]%f.k != 0 || y.Shape[1]%f.n != 0 {
		return tensorForm{}, false
	}
	return f, true
}

func (m *machine) formFor(e ir.Elem, o *ir.Op) (tensorForm, bool) {
	form := func(mma simt.Mma, bits int) (tensorForm, bool) {
		i := mma.Info()
		return tensorForm{m: i.M, n: i.N, k: i.K, bits: bits, mma: mma}, m.sm >= i.MinSM
	}
	switch {
	case e == ir.F16 && m.sm >= 80:
		return form(simt.MmaM16N8K16F16, 16)
	case e == ir.BF16:
		return form(simt.MmaM16N8K16BF16, 16)
	case e == ir.F32 && o.Precision == ir.TF32:
		return form(simt.MmaM16N8K8TF32, 32)
	case e == ir.I8:
		return form(simt.MmaM16N8K32S8, 8)
	case e == ir.E4M3:
		return form(simt.MmaM16N8K32E4M3, 8)
	case e == ir.E5M2:
		return form(simt.MmaM16N8K32E5M2, 8)
	}
	return tensorForm{}, false
}
