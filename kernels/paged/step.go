package paged

import (
	"math/bits"

	"github.com/kgen-dev/kgen/ir"
)

// step is where the BN tokens of a step lie in the cache, found once for keys and
// values. Tokens past the length, and their table entries, are not read.
type step struct {
	*kernel
	page, slot *ir.Value // of each token; of all of them, the first one's slot, where they share a page
	left       *ir.Value // tokens that there are
}

// locate finds the pages of the tokens from i on, a multiple of BN: each entry of the
// block table once, however many of its tokens there are.
func (k *kernel) locate(i *ir.Value) step {
	s := step{kernel: k, left: k.Sub(k.n, i)}
	size := k.p.Page
	entry := k.Ushr(i, k.Int(bits.TrailingZeros(uint(size))))
	if size >= k.BN {
		known := ir.Access{Mask: k.Cmp(ir.GT, s.left, k.Int(0))}
		s.page = k.Load(k.table, []*ir.Value{k.batch, entry}, ir.ScalarOf(ir.I32), known)
		s.slot = k.And(i, k.Int(size-1))
		return s
	}
	n := k.BN / size
	at := k.Add(k.Iota(0, n), entry)
	used := k.Shr(k.Add(s.left, k.Int(size-1)), k.Int(bits.TrailingZeros(uint(size))))
	s.page = k.Load(k.table, []*ir.Value{k.batch, at}, ir.TileOf(ir.I32, n), ir.Access{Limit: used})
	if size > 1 {
		s.page = k.Reshape(k.Cols(s.page, size), k.BN)
	}
	s.slot = k.And(k.Iota(0, k.BN), k.Int(size-1))
	return s
}

// load loads the tokens' rows of keys or values.
func (s *step) load(cache *ir.Value) *ir.Value {
	d, zero := s.p.HeadDim, s.Int(0)
	tile := ir.TileOf(s.p.elem(), s.BN, d)
	if s.page.Type.IsTile() {
		return s.Load(cache, s.p.order(s.page, s.slot, s.head, zero), tile, ir.Access{Limit: s.left})
	}
	exists := s.And(s.Cmp(ir.GE, s.page, zero), s.Cmp(ir.LT, s.page, s.Dim(cache, 0)))
	at := s.p.order(s.Select(exists, s.page, zero), s.slot, s.head, zero)
	rows := s.Subview(cache, at, []*ir.Value{s.Select(exists, s.left, zero), s.Int(d)}, []int{s.p.slotDim(), 3})
	return s.Load(rows, []*ir.Value{zero, zero}, tile)
}
