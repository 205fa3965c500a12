package vm

import "math"

// roundingShare bounds how far apart two sums of the same terms may be, as a
// share of the largest that the warp stores: a few dozen terms in another order.
const roundingShare = 0x1p-12

// rounded says whether a lane's store leaves the bytes as they are but for how
// f32 sums were rounded. lanes run the store. Compilers let every lane of a
// butterfly store the sum it has; where a product was fused with an addition the
// lanes' sums differ in their last bits, and any of them will do. The largest of
// the warp's numbers is the measure, since a sum itself may be near zero.
func (at *side) rounded(lanes uint32) bool {
	m := at.in.mem
	if m == nil || m.size != 4 || at.in.rule != ruleStore || at.data != nil || at.bytes == nil {
		return false
	}
	var top float64
	for l := lanes; l != 0; l &= l - 1 {
		for j := range m.data {
			v, ok := plainFloat(at.w.element(&m.data[j], firstLane(l)))
			if !ok {
				return false
			}
			top = max(top, math.Abs(v))
		}
	}
	for j := range m.data {
		v, _ := plainFloat(at.w.element(&m.data[j], at.lane))
		was, ok := plainFloat(readElement(at.bytes[j*m.size:], m.size))
		if !ok || math.Abs(v-was) > roundingShare*top {
			return false
		}
	}
	return true
}

// plainFloat reads an f32 and says whether it looks like one: whole numbers and
// addresses are hardly ever of such a size.
func plainFloat(bits uint64) (float64, bool) {
	v := float64(math.Float32frombits(uint32(bits)))
	return v, v == 0 || math.Abs(v) > 0x1p-60 && math.Abs(v) < 0x1p60
}
