package simt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// machine runs one thread of a kernel of integers and f32, to compare a kernel
// before and after a pass. It is written apart from the folding it checks.
type machine struct {
	regs   map[*Value]uint64
	global []byte // a Ptr is an index
	shared []byte
	params []uint64
	tid    uint64
	cta    uint64
	steps  int
	done   bool
	counts Counts // of what executed, as one warp
}

func (m *machine) run(k *Kernel) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, k)
		}
	}()
	m.regs = map[*Value]uint64{}
	for _, v := range k.Inputs {
		switch v.Def.Op {
		case OpParam:
			m.regs[v] = m.params[v.Def.Imm]
		case OpSharedBase:
			m.regs[v] = 0
		case OpSpecial:
			switch v.Def.Special {
			case TidX:
				m.regs[v] = m.tid
			case LaneID:
				m.regs[v] = m.tid & 31
			default:
				m.regs[v] = m.cta
			}
		}
	}
	m.block(k.Body)
	return nil
}

func mask(t Type) uint64 {
	switch t.Bits() {
	case 1:
		return 1
	case 16:
		return 0xffff
	case 32:
		return 0xffffffff
	}
	return math.MaxUint64
}

func (m *machine) get(v *Value) uint64 {
	if v.IsConst() {
		return uint64(v.Def.Imm) & mask(v.Type)
	}
	x, ok := m.regs[v]
	if !ok {
		panic(fmt.Sprintf("%s read before it is written", v))
	}
	return x
}

func (m *machine) set(v *Value, x uint64) { m.regs[v] = x & mask(v.Type) }

func signed(t Type, x uint64) int64 {
	switch t.Bits() {
	case 16:
		return int64(int16(x))
	case 32:
		return int64(int32(x))
	}
	return int64(x)
}

func (m *machine) all(vs []*Value) []uint64 {
	xs := make([]uint64, len(vs))
	for i, v := range vs {
		xs[i] = m.get(v)
	}
	return xs
}

func (m *machine) assign(vs []*Value, xs []uint64) {
	for i, v := range vs {
		m.set(v, xs[i])
	}
}

func (m *machine) block(b *Block) {
	for _, in := range b.Instrs {
		if m.done {
			return
		}
		if m.steps++; m.steps > 1e6 {
			panic("too many steps")
		}
		m.count(in)
		m.instr(in)
	}
}

func (m *machine) count(in *Instr) {
	skipped := in.Guard != nil && (m.get(in.Guard) != 0) == in.GuardNot
	switch {
	case in.Op == OpReturn:
	case in.Op == OpIf || in.Op == OpLoop:
		m.counts.Pipe[PipeCtrl]++
	case in.Body != nil:
	case skipped:
		m.counts.Pipe[in.Pipe()] += machineInstrs(in)
	default:
		m.counts.instr(in)
	}
}

func (m *machine) instr(in *Instr) {
	switch in.Op {
	case OpFor:
		i, hi, step := int32(m.get(in.Args[0])), int32(m.get(in.Args[1])), int32(m.get(in.Args[2]))
		carried := m.all(in.Args[3:])
		for ; i < hi && !m.done; i += step {
			m.counts.Pipe[PipeALU] += 2
			m.counts.Pipe[PipeCtrl]++
			m.set(in.Body.Params[0], uint64(uint32(i)))
			m.assign(in.Body.Params[1:], carried)
			m.block(in.Body)
			if !m.done {
				carried = m.all(in.Body.Yield)
			}
		}
		m.assign(in.Results, carried)
	case OpLoop:
		carried := m.all(in.Args)
		for again := true; again && !m.done; {
			m.assign(in.Body.Params, carried)
			m.block(in.Body)
			again = m.get(in.Body.Yield[0]) != 0
			carried = m.all(in.Body.Yield[1:])
		}
		m.assign(in.Results, carried)
	case OpIf:
		b := in.Body
		if m.get(in.Args[0]) == 0 {
			b = in.Else
		}
		if b != nil {
			m.block(b)
			if !m.done {
				m.assign(in.Results, m.all(b.Yield))
			}
		}
	case OpReturn:
		m.done = true
	case OpLd, OpSt:
		m.memory(in)
	case OpUnpack:
		x, half := m.get(in.Args[0]), in.Type.Bits()/2
		m.set(in.Results[0], x)
		m.set(in.Results[1], x>>half)
	default:
		x := m.all(in.Args)
		m.set(in.Results[0], compute(in, append(x, 0, 0, 0)))
	}
}

func (m *machine) memory(in *Instr) {
	if in.Guard != nil && (m.get(in.Guard) != 0) == in.GuardNot {
		for i, r := range in.Results {
			m.set(r, 0)
			if len(in.Args) > 1 {
				m.set(r, m.get(in.Args[1+i]))
			}
		}
		return
	}
	mem := m.global
	if in.Space == Shared {
		mem = m.shared
	}
	at := signed(in.Args[0].Type, m.get(in.Args[0])) + int64(in.Offset)
	for i := range int(in.Vec) {
		w := in.Mem.Bytes()
		p := mem[at+int64(i*w):][:w]
		if in.Op == OpSt {
			var full [8]byte
			binary.LittleEndian.PutUint64(full[:], m.get(in.Args[1+i]))
			copy(p, full[:])
			continue
		}
		var full [8]byte
		copy(full[:], p)
		m.set(in.Results[i], binary.LittleEndian.Uint64(full[:]))
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// compute is the meaning of the pure operations.
func compute(in *Instr, x []uint64) uint64 {
	t := in.Type
	if t == F32 && in.Op != OpCmp && in.Op != OpSelect && in.Op != OpBitcast {
		return computeF32(in.Op, x)
	}
	s := func(i int) int64 { return signed(in.Args[i].Type, x[i]) }
	shift := x[1] & 0xffffffff
	switch in.Op {
	case OpAdd:
		return x[0] + x[1]
	case OpSub:
		return x[0] - x[1]
	case OpMul:
		return x[0] * x[1]
	case OpMulHi:
		hi, _ := bits.Mul64(uint64(s(0)), uint64(s(1)))
		if t == I32 {
			return uint64(s(0)*s(1)) >> 32
		}
		return hi - uint64(s(0)>>63)&x[1] - uint64(s(1)>>63)&x[0]
	case OpMulHiU:
		if t == I32 {
			return x[0] * x[1] >> 32
		}
		hi, _ := bits.Mul64(x[0], x[1])
		return hi
	case OpMulWide:
		return uint64(s(0) * s(1))
	case OpMulWideU:
		return x[0] * x[1]
	case OpMad, OpMadWideU:
		return x[0]*x[1] + x[2]
	case OpMadWide:
		return uint64(s(0)*s(1)) + x[2]
	case OpDivU:
		return x[0] / x[1]
	case OpRemU:
		return x[0] % x[1]
	case OpDiv:
		return uint64(s(0) / s(1))
	case OpRem:
		return uint64(s(0) % s(1))
	case OpMin:
		return uint64(min(s(0), s(1)))
	case OpMax:
		return uint64(max(s(0), s(1)))
	case OpMinU:
		return min(x[0], x[1])
	case OpMaxU:
		return max(x[0], x[1])
	case OpNeg:
		return -x[0]
	case OpAbs:
		return uint64(max(s(0), -s(0)))
	case OpAnd:
		return x[0] & x[1]
	case OpOr:
		return x[0] | x[1]
	case OpXor:
		return x[0] ^ x[1]
	case OpNot:
		return ^x[0]
	case OpLop3:
		var r uint64
		for i := range 32 {
			n := x[0]>>i&1<<2 | x[1]>>i&1<<1 | x[2]>>i&1
			r |= uint64(in.Imm) >> n & 1 << i
		}
		return r
	case OpShl:
		if shift >= uint64(t.Bits()) {
			return 0
		}
		return x[0] << shift
	case OpShrU:
		if shift >= uint64(t.Bits()) {
			return 0
		}
		return x[0] >> shift
	case OpShr:
		return uint64(s(0) >> min(shift, 63))
	case OpCmp:
		return compare(in, x)
	case OpSelect:
		if x[0] != 0 {
			return x[1]
		}
		return x[2]
	case OpSext:
		return uint64(s(0))
	case OpZext, OpTrunc, OpBitcast:
		return x[0]
	case OpPack:
		return x[0] | x[1]<<(t.Bits()/2)
	}
	panic("no meaning for " + in.Op.String())
}

func compare(in *Instr, x []uint64) uint64 {
	if in.Type == F32 {
		a, b := math.Float32frombits(uint32(x[0])), math.Float32frombits(uint32(x[1]))
		odd := a != a || b != b
		switch in.Cmp {
		case EQ:
			return b2u(a == b)
		case NE:
			return b2u(a != b && !odd)
		case LT:
			return b2u(a < b)
		case LE:
			return b2u(a <= b)
		case GT:
			return b2u(a > b)
		case GE:
			return b2u(a >= b)
		case LTU:
			return b2u(!(a >= b))
		case LEU:
			return b2u(!(a > b))
		case GTU:
			return b2u(!(a <= b))
		}
		return b2u(!(a < b))
	}
	a, b := signed(in.Args[0].Type, x[0]), signed(in.Args[1].Type, x[1])
	switch in.Cmp {
	case EQ:
		return b2u(a == b)
	case NE:
		return b2u(a != b)
	case LT:
		return b2u(a < b)
	case LE:
		return b2u(a <= b)
	case GT:
		return b2u(a > b)
	case GE:
		return b2u(a >= b)
	case LTU:
		return b2u(x[0] < x[1])
	case LEU:
		return b2u(x[0] <= x[1])
	case GTU:
		return b2u(x[0] > x[1])
	}
	return b2u(x[0] >= x[1])
}

func computeF32(op Op, x []uint64) uint64 {
	a, b, c := math.Float32frombits(uint32(x[0])), math.Float32frombits(uint32(x[1])), math.Float32frombits(uint32(x[2]))
	var r float32
	switch op {
	case OpAdd:
		r = a + b
	case OpSub:
		r = a - b
	case OpMul:
		r = a * b
	case OpFma:
		r = float32(math.FMA(float64(a), float64(b), float64(c))) // close enough: the same before and after
	case OpNeg:
		return x[0] ^ 1<<31
	case OpMax:
		r = a
		if b > a || a != a {
			r = b
		}
	default:
		panic("no meaning for f32 " + op.String())
	}
	if r != r {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(r))
}
