package vm

import "math"

// How far apart two sums of the same terms may be, as a share of the largest that
// the warp stores: a few dozen terms in another order.
const (
	roundingShare   = 0x1p-12 // of f32
	roundingShare64 = 0x1p-41 // of f64
)

// rounded says whether a lane's store leaves the bytes as they are but for how
// sums were rounded: of f32, of pairs of f32 in 8 bytes, or of f64. lanes run the
// store. Compilers let every lane of a butterfly store the sum it has; where a
// product was fused with an addition the lanes' sums differ in their last bits, and
// any of them will do.
func (at *side) rounded(lanes uint32) bool {
	m := at.in.mem
	if m == nil || at.in.rule != ruleStore || at.data != nil || at.bytes == nil {
		return false
	}
	switch m.size {
	case 4:
		return at.roundedAs(lanes, roundingShare, plainFloat)
	case 8:
		return at.roundedAs(lanes, roundingShare, plainPair) || at.roundedAs(lanes, roundingShare64, plainDouble)
	}
	return false
}

// roundedAs is rounded for elements that read makes floats of. The largest of the
// warp's numbers is the measure, since a sum itself may be near zero.
func (at *side) roundedAs(lanes uint32, share float64, read func(bits uint64) ([2]float64, bool)) bool {
	m := at.in.mem
	var top float64
	for l := lanes; l != 0; l &= l - 1 {
		for j := range m.data {
			v, ok := read(at.w.element(&m.data[j], firstLane(l)))
			if !ok {
				return false
			}
			top = max(top, math.Abs(v[0]), math.Abs(v[1]))
		}
	}
	for j := range m.data {
		v, _ := read(at.w.element(&m.data[j], at.lane))
		was, ok := read(readElement(at.bytes[j*m.size:], m.size))
		if !ok || max(math.Abs(v[0]-was[0]), math.Abs(v[1]-was[1])) > share*top {
			return false
		}
	}
	return true
}

// plainFloat reads an f32 and says whether it looks like one.
func plainFloat(bits uint64) (v [2]float64, ok bool) {
	v[0] = float64(math.Float32frombits(uint32(bits)))
	return v, plain(v[0])
}

// plainPair is plainFloat for two side by side.
func plainPair(bits uint64) (v [2]float64, ok bool) {
	v[0], v[1] = float64(math.Float32frombits(uint32(bits))), float64(math.Float32frombits(uint32(bits>>32)))
	return v, plain(v[0]) && plain(v[1])
}

// plainDouble is plainFloat for an f64.
func plainDouble(bits uint64) (v [2]float64, ok bool) {
	v[0] = math.Float64frombits(bits)
	return v, plain(v[0])
}

// plain says whether a number is of a size that sums are of: whole numbers and
// addresses, read as floats, hardly ever are.
func plain(v float64) bool { return v == 0 || math.Abs(v) > 0x1p-60 && math.Abs(v) < 0x1p60 }
