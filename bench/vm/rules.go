package vm

import (
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// undefinedRule says how an instruction's results depend on undefined bits of
// its operands.
type undefinedRule uint8

const (
	ruleAll     undefinedRule = iota // any undefined bit makes the whole result undefined
	ruleCopy                         // bit by bit the source's
	ruleBitwise                      // each bit depends on the same bits of the sources
	ruleAnd                          // as well, and a defined 0 decides
	ruleOr                           // as well, and a defined 1 decides
	ruleAndPred
	ruleOrPred
	ruleSum // a bit depends on those at and below it
	ruleShift
	ruleField
	ruleInsert
	ruleFunnel
	rulePermute
	ruleSelect
	rulePack
	rulePair
	ruleUnpack
	ruleConvert
	ruleLoad
	ruleStore
	ruleMatrix
	ruleLoadMatrix
	ruleStoreMatrix
	ruleAsyncCopy
	ruleWgmma
	ruleTensorLoad
	ruleTensorStore
	numRules
)

// rules run an instruction some of whose operands are undefined in lanes m.
var rules [numRules]func(w *warp, in *inst, m uint32)

func init() {
	rules = [numRules]func(w *warp, in *inst, m uint32){
		ruleAll:         allUndefined,
		ruleCopy:        spread((*warp).bitsOfA),
		ruleBitwise:     spread((*warp).bitsOfAny),
		ruleAnd:         spread((*warp).bitsOfAnd),
		ruleOr:          spread((*warp).bitsOfOr),
		ruleAndPred:     spread((*warp).bitsOfAndPred),
		ruleOrPred:      spread((*warp).bitsOfOrPred),
		ruleSum:         spread((*warp).bitsOfSum),
		ruleShift:       spread((*warp).bitsOfShift),
		ruleField:       spread((*warp).bitsOfMoved),
		ruleFunnel:      spread((*warp).bitsOfMoved),
		rulePermute:     spread((*warp).bitsOfMoved),
		ruleInsert:      spread((*warp).bitsOfInsert),
		ruleSelect:      spread((*warp).bitsOfSelect),
		rulePack:        spread((*warp).bitsOfPack),
		rulePair:        spread((*warp).bitsOfPair),
		ruleConvert:     spread((*warp).bitsOfConvert),
		ruleUnpack:      undefinedUnpack,
		ruleLoad:        undefinedLoad,
		ruleStore:       undefinedStore,
		ruleMatrix:      undefinedMatrix,
		ruleLoadMatrix:  undefinedLoad,
		ruleStoreMatrix: undefinedStoreMatrix,
		ruleAsyncCopy:   undefinedAsyncCopy,
		ruleWgmma:       undefinedWgmma,
		ruleTensorLoad:  undefinedTensorLoad,
		ruleTensorStore: undefinedTensorStore,
	}
}

// allUndefined makes all results undefined.
func allUndefined(w *warp, in *inst, m uint32) {
	var from lanes32
	for l := m; l != 0; l &= l - 1 {
		i := firstLane(l)
		from[i] = w.originOf(in, i)
	}
	w.plain(in)
	for _, s := range in.defs {
		w.define(s, w.mask)
		for l := m; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.undefine(s, i, ^uint64(0), from[i])
		}
	}
}

// spread is the rule of an instruction with one result, whose undefined bits f
// computes from its operands in a lane.
func spread(f func(w *warp, in *inst, lane int) uint64) func(w *warp, in *inst, m uint32) {
	return func(w *warp, in *inst, m uint32) {
		var bits lanes64
		var from lanes32
		for l := m; l != 0; l &= l - 1 {
			i := firstLane(l)
			bits[i] = f(w, in, i)
			from[i] = w.originOf(in, i)
		}
		w.plain(in)
		if len(in.defs) == 0 {
			return
		}
		s := in.defs[0]
		w.define(s, w.mask)
		for l := m; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.undefine(s, i, bits[i], from[i])
		}
	}
}

// The operands a, b, c of a pure instruction: undefined bits and values.

func (w *warp) bitsA(in *inst, i int) uint64 { return w.bitsOf(w.fr.prog.unified(in.ka, in.a), i) }
func (w *warp) bitsB(in *inst, i int) uint64 { return w.bitsOf(w.fr.prog.unified(in.kb, in.b), i) }
func (w *warp) bitsC(in *inst, i int) uint64 { return w.bitsOf(w.fr.prog.unified(in.kc, in.c), i) }

func (w *warp) valueOf(k class, slot int32, i int) uint64 {
	switch k {
	case class64:
		return w.q[slot][i]
	case class32:
		return uint64(w.r[slot][i])
	}
	return uint64(w.p[slot] >> i & 1)
}

func (w *warp) bitsOfA(in *inst, i int) uint64 {
	// A copy may leave ka unset; its only operand is what it uses.
	return w.bitsOf(in.uses[0], i)
}

func (w *warp) bitsOfAny(in *inst, i int) uint64 {
	var v uint64
	for _, s := range in.uses {
		v |= w.bitsOf(s, i)
	}
	return v
}

func (w *warp) bitsOfAnd(in *inst, i int) uint64 {
	va, vb := w.bitsA(in, i), w.bitsB(in, i)
	a, b := w.valueOf(in.ka, in.a, i), w.valueOf(in.kb, in.b, i)
	return va&vb | va&b | vb&a
}

func (w *warp) bitsOfOr(in *inst, i int) uint64 {
	va, vb := w.bitsA(in, i), w.bitsB(in, i)
	a, b := w.valueOf(in.ka, in.a, i), w.valueOf(in.kb, in.b, i)
	return va&vb | va&^b | vb&^a
}

func (w *warp) predicates(in *inst, i int) (va, vb, a, b uint64) {
	va = w.bitsOf(w.fr.prog.unified(classPred, in.a), i)
	vb = w.bitsOf(w.fr.prog.unified(classPred, in.b), i)
	a = uint64((w.p[in.a] ^ in.neg) >> i & 1)
	b = uint64((w.p[in.b] ^ uint32(in.imm)) >> i & 1)
	return
}

func (w *warp) bitsOfAndPred(in *inst, i int) uint64 {
	va, vb, a, b := w.predicates(in, i)
	return va&vb | va&b | vb&a
}

func (w *warp) bitsOfOrPred(in *inst, i int) uint64 {
	va, vb, a, b := w.predicates(in, i)
	return va&vb | va&^b | vb&^a
}

func (w *warp) bitsOfSum(in *inst, i int) uint64 {
	v := w.bitsOfAny(in, i)
	return v | -v
}

// bitsOfShift moves the undefined bits as the value's.
func (w *warp) bitsOfShift(in *inst, i int) uint64 {
	if w.bitsB(in, i) != 0 {
		return ^uint64(0)
	}
	return in.lane(w.bitsA(in, i), w.valueOf(in.kb, in.b, i), 0)
}

// bitsOfMoved is of instructions whose last operands say where bits go.
func (w *warp) bitsOfMoved(in *inst, i int) uint64 {
	if w.bitsC(in, i) != 0 {
		return ^uint64(0)
	}
	c := w.valueOf(in.kc, in.c, i)
	if in.rule == ruleField {
		if w.bitsB(in, i) != 0 {
			return ^uint64(0)
		}
		return in.lane(w.bitsA(in, i), w.valueOf(in.kb, in.b, i), c)
	}
	return in.lane(w.bitsA(in, i), w.bitsB(in, i), c)
}

func (w *warp) bitsOfInsert(in *inst, i int) uint64 {
	bits := func(j int) uint64 { return w.bitsOf(w.fr.prog.unified(in.list[j].k, in.list[j].slot), i) }
	if bits(2)|bits(3) != 0 {
		return ^uint64(0)
	}
	n := uint64(32)
	if in.kd == class64 {
		n = 64
	}
	return bfi(bits(0), bits(1), uint64(w.r[in.list[2].slot][i]), uint64(w.r[in.list[3].slot][i]), n)
}

func (w *warp) bitsOfSelect(in *inst, i int) uint64 {
	p := w.fr.prog
	va, vb := w.bitsOf(p.unified(in.kd, in.a), i), w.bitsOf(p.unified(in.kd, in.b), i)
	if w.bitsOf(p.unified(classPred, in.c), i) != 0 {
		return va | vb | w.valueOf(in.kd, in.a, i) ^ w.valueOf(in.kd, in.b, i)
	}
	if (w.p[in.c]^in.neg)>>i&1 != 0 {
		return va
	}
	return vb
}

func (w *warp) bitsOfPack(in *inst, i int) uint64 {
	var v uint64
	for j, e := range in.list {
		v |= w.bitsOf(w.fr.prog.unified(e.k, e.slot), i) << (uint64(j) * in.imm)
	}
	return v
}

// bitsOfPair: the first source makes the upper part.
func (w *warp) bitsOfPair(in *inst, i int) uint64 {
	var v uint64
	if w.bitsA(in, i) != 0 {
		v = (1<<in.imm - 1) << in.imm
	}
	if w.bitsB(in, i) != 0 {
		v |= 1<<in.imm - 1
	}
	return v
}

func (w *warp) bitsOfConvert(in *inst, i int) uint64 {
	return in.lane(low(w.bitsA(in, i), int(in.imm)), 0, 0)
}

func undefinedUnpack(w *warp, in *inst, m uint32) {
	var bits lanes64
	var from lanes32
	for l := m; l != 0; l &= l - 1 {
		i := firstLane(l)
		bits[i], from[i] = w.bitsA(in, i), w.originOf(in, i)
	}
	w.plain(in)
	for j, e := range in.list {
		if e.slot < 0 {
			continue
		}
		s := w.fr.prog.unified(e.k, e.slot)
		w.define(s, w.mask)
		for l := m; l != 0; l &= l - 1 {
			i := firstLane(l)
			w.undefine(s, i, low(bits[i]>>(uint64(j)*in.imm), int(in.imm)), from[i])
		}
	}
}

// undefinedLoad reports the address; the load says what it read.
func undefinedLoad(w *warp, in *inst, m uint32) {
	var bad uint32
	for _, s := range in.uses {
		bad |= w.checkLanes(in, s, m, "as an address")
	}
	for _, s := range in.defs {
		w.define(s, w.mask)
	}
	if in.rule == ruleLoadMatrix {
		w.plain(in) // all lanes together
		return
	}
	w.without(bad, in)
	w.zero(in.mem, bad)
}

// without runs an instruction for the active lanes but some: what an undefined
// address leads to is no second defect.
func (w *warp) without(bad uint32, in *inst) {
	saved := w.mask
	w.mask &^= bad
	if w.mask != 0 {
		w.plain(in)
	}
	w.mask = saved
}

// undefinedStore reports the address, and the value where others can see it.
func undefinedStore(w *warp, in *inst, m uint32) {
	mem := in.mem
	k := class32
	if mem.wide {
		k = class64
	}
	bad := w.checkLanes(in, w.fr.prog.unified(k, mem.base), m, "as an address")
	var addr lanes64
	w.addresses(mem, &addr)
	w.without(bad, in)
	for l := m &^ bad; l != 0; l &= l - 1 {
		i := firstLane(l)
		for j := range mem.data {
			o := &mem.data[j]
			s := w.fr.prog.unified(o.k, o.slot)
			bits := low(w.bitsOf(s, i), 8*mem.size)
			if bits == 0 {
				continue
			}
			from := w.fr.undef.origin[s][i]
			if !w.keepUndefined(in, i, addr[i]+uint64(j*mem.size), mem.size, bits, from) {
				w.useUndefined(in, i, from, "by a store to global memory")
				break
			}
		}
	}
}

// keepUndefined lets shared or local memory remember an undefined value; false
// if the address is in neither.
func (w *warp) keepUndefined(in *inst, lane int, addr uint64, n int, bits uint64, from uint32) bool {
	space := in.mem.space
	if space == ptx.SpaceGeneric {
		switch space = spaceOf(addr); space {
		case ptx.SpaceShared:
			addr -= sharedWindow
		case ptx.SpaceLocal:
			addr -= localWindow
		}
	}
	switch space {
	case ptx.SpaceShared:
		if off, c := w.find(addr, n, in.mem.reaches()); c != nil {
			w.b.undef.undefine(off, n, bits, from)
		}
		return true
	case ptx.SpaceLocal:
		if addr+uint64(n) <= uint64(w.localSize) && addr < uint64(w.localSize) {
			w.localUndef.undefine(uint64(lane)*uint64(w.localSize)+addr, n, bits, from)
		}
		return true
	}
	return false
}

// undefinedMatrix: an element of D depends on its row of A, its column of B and
// its element of C.
func undefinedMatrix(w *warp, in *inst, _ uint32) {
	var marks []undefinedMark
	if in.mma != nil {
		marks = w.undefinedProduct(marks, in.mma)
	}
	for _, op := range in.tiles {
		marks = w.undefinedProduct(marks, op)
	}
	w.plain(in)
	for _, s := range in.defs {
		w.define(s, w.mask)
	}
	for _, x := range marks {
		w.undefine(x.slot, x.lane, w.bitsOf(x.slot, x.lane)|x.bits, x.from)
	}
}

// undefinedMark is undefined bits of a register's lane.
type undefinedMark struct {
	slot int32
	lane int
	bits uint64
	from uint32
}

// undefinedProduct adds what is undefined of D.
func (w *warp) undefinedProduct(marks []undefinedMark, op *mmaOp) []undefinedMark {
	p := w.fr.prog
	k := class32
	if op.at == ptx.F64 {
		k = class64
	}
	var rowFrom [tileM]uint32
	var colFrom [tileN]uint32
	var rowBad, colBad uint32
	for r, s := range op.a {
		u := p.unified(k, s)
		for l := w.u[u]; l != 0; l &= l - 1 {
			lane := firstLane(l)
			row := lane >> 2
			if op.m == 16 {
				row += 8 * (r & 1)
			}
			rowBad |= 1 << row
			rowFrom[row] = w.fr.undef.origin[u][lane]
		}
	}
	for _, s := range op.b {
		u := p.unified(k, s)
		for l := w.u[u]; l != 0; l &= l - 1 {
			lane := firstLane(l)
			colBad |= 1 << (lane >> 2)
			colFrom[lane>>2] = w.fr.undef.origin[u][lane]
		}
	}
	for e := range op.m / 4 { // elements of C and D in a lane
		c, cBits := fragmentElement(op.c, op.ct, e)
		d, dBits := fragmentElement(op.d, op.dt, e)
		for lane := range warpSize {
			row, col := lane>>2+8*(e>>1), 2*(lane&3)+e&1
			uc := p.unified(k, c)
			from, bad := uint32(0), true
			switch {
			case rowBad>>row&1 != 0:
				from = rowFrom[row]
			case colBad>>col&1 != 0:
				from = colFrom[col]
			case w.bitsOf(uc, lane)&cBits != 0:
				from = w.fr.undef.origin[uc][lane]
			default:
				bad = false
			}
			if bad {
				marks = append(marks, undefinedMark{p.unified(k, d), lane, dBits, from})
			}
		}
	}
	return marks
}

// fragmentElement is the register of an accumulator's element, and its bits
// there.
func fragmentElement(slots []int32, t ptx.Type, e int) (int32, uint64) {
	if t == ptx.F16 {
		return slots[e/2], 0xffff << (16 * (e & 1))
	}
	return slots[e], ^uint64(0)
}

func undefinedStoreMatrix(w *warp, in *inst, m uint32) {
	k := class32
	if in.mem.wide {
		k = class64
	}
	w.checkLanes(in, w.fr.prog.unified(k, in.mem.base), m, "as an address")
	w.plain(in)
	var off lanes64
	ok := w.rows(in, &off)
	for j, e := range in.list {
		s := w.fr.prog.unified(class32, e.slot)
		for l := w.u[s]; l != 0; l &= l - 1 {
			lane := firstLane(l)
			bits, from := w.fr.undef.bits[s][lane], w.fr.undef.origin[s][lane]
			for h := range 2 {
				x := bits >> (16 * h) & 0xffff
				row, col := lane>>2, 2*(lane&3)+h
				if in.imm != 0 {
					row, col = col, row
				}
				if x != 0 && ok>>(8*j+row)&1 != 0 {
					w.b.undef.undefine(off[8*j+row]+uint64(2*col), 2, x, from)
				}
			}
		}
	}
}

// undefinedAsyncCopy reports addresses and sizes.
func undefinedAsyncCopy(w *warp, in *inst, m uint32) {
	for _, s := range in.uses {
		w.checkLanes(in, s, m, "as an address or size of a copy")
	}
	w.plain(in)
}

// undefinedWgmma reports descriptors and undefined values of A in registers;
// accumulators in flight are its own affair.
func undefinedWgmma(w *warp, in *inst, m uint32) {
	op := in.wg
	p := w.fr.prog
	w.checkLanes(in, p.unified(class64, op.descB), m, "as a matrix descriptor")
	if op.aRegs {
		for _, s := range op.a {
			w.checkLanes(in, p.unified(class32, s), m, "by a matrix instruction")
		}
	} else {
		w.checkLanes(in, p.unified(class64, op.descA), m, "as a matrix descriptor")
	}
	if op.scaled {
		w.checkLanes(in, p.unified(classPred, op.scaleD), m, "as a condition")
	}
	if op.sparse != nil {
		w.checkLanes(in, p.unified(class32, op.sparse.slot), m, "as the metadata of a matrix")
	}
	w.plain(in)
}
