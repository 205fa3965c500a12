package vm

import "github.com/kgen-dev/kgen/codegen/ptx"

// Loops over the lanes for the instructions that programs are made of. Each
// computes what the lane function of the same instruction does; a test compares
// them.

// fastBinary is the loop of an integer or bitwise instruction, or nil.
func fastBinary(op string, t ptx.Type) execFn {
	switch t.Bits() {
	case 32:
		switch op {
		case "add":
			return add32
		case "sub":
			return sub32
		case "mul.lo":
			return mul32
		case "mad.lo":
			return mad32
		case "and":
			return and32
		case "or":
			return or32
		case "xor":
			return xor32
		}
		if t == ptx.S32 {
			switch op {
			case "mul.wide":
				return mulWideS32
			case "mad.wide":
				return madWideS32
			case "min":
				return minS32
			case "max":
				return maxS32
			}
		}
		if t == ptx.U32 {
			switch op {
			case "mul.wide":
				return mulWideU32
			case "mad.wide":
				return madWideU32
			case "min":
				return minU32
			case "max":
				return maxU32
			case "div":
				return divU32
			case "rem":
				return remU32
			}
		}
	case 64:
		switch op {
		case "add":
			return add64
		case "sub":
			return sub64
		case "mul.lo":
			return mul64
		case "mad.lo":
			return mad64
		case "and":
			return and64
		case "or":
			return or64
		case "xor":
			return xor64
		}
	}
	return nil
}

func add32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		add32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		sub32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		mul32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad32(w *warp, in *inst) {
	d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
	if vectorLanes {
		mad32Vector(d, a, b, c)
		return
	}
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func and32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		and32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		or32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		xor32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func mulWideS32(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		mulWideS32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
	}
}

func madWideS32(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.r[in.a], &w.r[in.b], &w.q[in.c]
	for i := range d {
		d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
	}
}

func mulWideU32(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		mulWideU32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = uint64(a[i]) * uint64(b[i])
	}
}

func madWideU32(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.r[in.a], &w.r[in.b], &w.q[in.c]
	for i := range d {
		d[i] = uint64(a[i])*uint64(b[i]) + c[i]
	}
}

func minS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint32(min(int32(a[i]), int32(b[i])))
	}
}

func maxS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint32(max(int32(a[i]), int32(b[i])))
	}
}

func minU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func maxU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func divU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		if b[i] == 0 {
			d[i] = allLanes
			continue
		}
		d[i] = a[i] / b[i]
	}
}

func remU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
			continue
		}
		d[i] = a[i] % b[i]
	}
}

func add64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	if vectorLanes {
		add64Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad64(w *warp, in *inst) {
	d, a, b, c := &w.q[in.d], &w.q[in.a], &w.q[in.b], &w.q[in.c]
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func and64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.q[in.b]
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func fastUnary(op string, t ptx.Type) execFn {
	if t.Bits() != 32 {
		return nil
	}
	switch op {
	case "neg":
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				d[i] = -a[i]
			}
		}
	case "not":
		return func(w *warp, in *inst) {
			d, a := &w.r[in.d], &w.r[in.a]
			for i := range d {
				d[i] = ^a[i]
			}
		}
	}
	return nil
}

func fastShift(op string, t ptx.Type) execFn {
	switch {
	case op == "shl" && t.Bits() == 32:
		return shl32
	case op == "shl" && t.Bits() == 64:
		return shl64
	case t == ptx.S32:
		return shrS32
	case t.Bits() == 32:
		return shrU32
	case t == ptx.S64:
		return shrS64
	case t.Bits() == 64:
		return shrU64
	}
	return nil
}

func shl32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		shl32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shrU32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		shrU32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shrS32(w *warp, in *inst) {
	d, a, b := &w.r[in.d], &w.r[in.a], &w.r[in.b]
	if vectorLanes {
		shrS32Vector(d, a, b)
		return
	}
	for i := range d {
		d[i] = uint32(int32(a[i]) >> b[i])
	}
}

func shl64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shrU64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shrS64(w *warp, in *inst) {
	d, a, b := &w.q[in.d], &w.q[in.a], &w.r[in.b]
	for i := range d {
		d[i] = uint64(int64(a[i]) >> b[i])
	}
}

// fastLop3 has the common tables as expressions of their own.
func fastLop3(w *warp, in *inst) {
	d, a, b, c := &w.r[in.d], &w.r[in.a], &w.r[in.b], &w.r[in.c]
	switch in.imm {
	case 0x96: // a ^ b ^ c
		for i := range d {
			d[i] = a[i] ^ b[i] ^ c[i]
		}
	case 0xe8: // majority
		for i := range d {
			d[i] = a[i]&b[i] | a[i]&c[i] | b[i]&c[i]
		}
	case 0xca: // a ? b : c
		for i := range d {
			d[i] = a[i]&b[i] | ^a[i]&c[i]
		}
	case 0xea: // a & b | c
		for i := range d {
			d[i] = a[i]&b[i] | c[i]
		}
	case 0xf8: // a | b & c
		for i := range d {
			d[i] = a[i] | b[i]&c[i]
		}
	case 0x6a: // a & b ^ c
		for i := range d {
			d[i] = a[i]&b[i] ^ c[i]
		}
	case 0x78: // a ^ b & c
		for i := range d {
			d[i] = a[i] ^ b[i]&c[i]
		}
	default:
		for i := range d {
			d[i] = uint32(lop3Word(uint64(a[i]), uint64(b[i]), uint64(c[i]), in.imm))
		}
	}
}
