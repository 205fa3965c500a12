package vm

import (
	"fmt"
	"sync/atomic"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// Definedness travels with values as in Valgrind's memcheck, bit by bit. Each
// register has a mask of lanes with undefined bits; which bits those are and
// where they come from is kept beside, and looked at only while some register
// has any (modeUndefined). A value that is undefined in part is a fault only
// where it becomes an address, a guard or a store that others can see.

// undefinedBits are the undefined bits of a frame's registers, by unified slot.
type undefinedBits struct {
	bits   []lanes64
	origin []lanes32 // index in block.origins
}

// bits makes room for a frame's undefined bits.
func (f *frame) bits() *undefinedBits {
	if f.undef == nil {
		n := f.prog.total()
		f.undef = &undefinedBits{make([]lanes64, n), make([]lanes32, n)}
	}
	return f.undef
}

// origin is where an undefined value came from.
type origin struct {
	class bench.FaultClass
	src   *ptx.Instruction // the load, nil of a register
	name  string           // of a register
	taken *ptx.Instruction // what read it from tensor memory, where nobody had written; nil elsewhere
	space ptx.Space
	addr  uint64
	size  int
	order order // of the load
	warp  int
	lane  int

	epoch, tick uint32 // when it was: barriers of the block so far, and its warp's tick
}

// Bounds on a block's list of origins; later ones share the last. Of one load it
// keeps as many as a block has threads.
const (
	maxOrigins     = 1 << 16
	maxOriginsOfIn = 1024
)

// originCount is how many origins an instruction has, and which is the last.
type originCount struct {
	src  *ptx.Instruction
	n    int
	last uint32
}

func (b *block) addOrigin(o origin) uint32 {
	c := b.lastOrigin
	if c == nil || c.src != o.src {
		if c = b.originsOf[o.src]; c == nil {
			c = &originCount{src: o.src}
			b.originsOf[o.src] = c
		}
		b.lastOrigin = c
	}
	switch {
	case o.src != nil && c.n >= maxOriginsOfIn:
		return c.last
	case len(b.origins) >= maxOrigins:
		return maxOrigins - 1
	}
	if b.race != nil {
		o.epoch, o.tick = b.race.epoch, b.warps[o.warp].clock.tick
	}
	b.origins = append(b.origins, o)
	c.n++
	c.last = uint32(len(b.origins) - 1)
	return c.last
}

// undefine marks what may be read before it is written.
func (w *warp) undefineStart(f *frame) {
	f.undefs = 0
	f.fragments.reset()
	if f.u == nil {
		return
	}
	clear(f.u)
	if len(f.prog.undefined) == 0 {
		return
	}
	u := f.bits()
	for _, s := range f.prog.undefined {
		f.u[s.slot] = allLanes
		f.undefs++
		id := w.b.addOrigin(origin{class: bench.UninitialisedRegister, name: s.name})
		for i := range warpSize {
			u.bits[s.slot][i] = f.prog.width(s.slot)
			u.origin[s.slot][i] = id
		}
	}
}

// width is all bits of a unified slot.
func (p *program) width(slot int32) uint64 {
	switch {
	case slot < p.base[class64]:
		return 0xffffffff
	case slot < p.base[classPred]:
		return ^uint64(0)
	}
	return 1
}

// define marks lanes of a register as defined.
func (w *warp) define(slot int32, lanes uint32) {
	old := w.u[slot]
	if old&lanes == 0 {
		return
	}
	w.u[slot] = old &^ lanes
	if old&^lanes == 0 {
		w.undefs--
		if w.undefs == 0 {
			w.setMode()
		}
	}
}

// undefine marks bits of one lane of a register as undefined.
func (w *warp) undefine(slot int32, lane int, bits uint64, from uint32) {
	bits &= w.fr.prog.width(slot)
	if bits == 0 {
		w.define(slot, 1<<lane)
		return
	}
	if w.u[slot] == 0 {
		w.undefs++
		w.mode = modeUndefined
	}
	w.u[slot] |= 1 << lane
	u := w.fr.bits()
	u.bits[slot][lane] = bits
	u.origin[slot][lane] = from
}

// undefineWhole marks all bits of all lanes of a register as undefined.
func (w *warp) undefineWhole(slot int32, from uint32) {
	if w.u[slot] == 0 {
		w.undefs++
		w.mode = modeUndefined
	}
	w.u[slot] = allLanes
	u, width := w.fr.bits(), w.fr.prog.width(slot)
	bits, origin := &u.bits[slot], &u.origin[slot]
	for i := range bits {
		bits[i], origin[i] = width, from
	}
}

// bitsOf is the undefined bits of a lane of a register.
func (w *warp) bitsOf(slot int32, lane int) uint64 {
	if w.u[slot]>>lane&1 == 0 {
		return 0
	}
	return w.fr.undef.bits[slot][lane]
}

// originOf is the origin of the first operand that is undefined in a lane.
func (w *warp) originOf(in *inst, lane int) uint32 {
	for _, s := range in.uses {
		if w.u[s]>>lane&1 != 0 {
			return w.fr.undef.origin[s][lane]
		}
	}
	return 0
}

// plain runs an instruction for the active lanes.
func (w *warp) plain(in *inst) {
	if in.kind != kindPure || w.mask == w.live {
		in.fn[modeFull](w, in)
	} else {
		in.fn[modePartial](w, in)
	}
}

// undefined runs an instruction and carries undefined bits over to its
// results.
func undefined(w *warp, in *inst) {
	var m uint32
	for _, s := range in.uses {
		m |= w.u[s]
	}
	m &= w.mask
	if m == 0 {
		for _, s := range in.defs {
			w.define(s, w.mask)
		}
		w.plain(in)
		return
	}
	rules[in.rule](w, in, m)
}

// guardedUndefined is guarded for a guard that may be undefined.
func guardedUndefined(w *warp, in *inst) {
	w.checkGuard(in)
	guarded(w, in)
}

// checkGuard reports a guard that is undefined in active lanes.
func (w *warp) checkGuard(in *inst) {
	w.checkLanes(in, w.fr.prog.unified(classPred, in.guard), w.mask, "as a condition")
}

// checkOperand reports an operand that decides what an instruction does.
func (w *warp) checkOperand(in *inst, k class, slot int32, lanes uint32) {
	w.checkLanes(in, w.fr.prog.unified(k, slot), lanes, "as an operand that must be known")
}

// checkAddress reports an undefined address, by its unified slot.
func (w *warp) checkAddress(in *inst, slot int32, lanes uint32) {
	w.checkLanes(in, slot, lanes, "as an address")
}

// checkOperands reports any undefined operand.
func (w *warp) checkOperands(in *inst, lanes uint32) {
	for _, s := range in.uses {
		w.checkLanes(in, s, lanes, "by an atomic operation")
	}
}

// checkLanes reports undefined lanes of a register that is used, and counts
// them as defined from then on: one defect, one report.
func (w *warp) checkLanes(in *inst, slot int32, lanes uint32, use string) (bad uint32) {
	m := w.u[slot] & lanes
	for l := m; l != 0; l &= l - 1 {
		i := firstLane(l)
		w.useUndefined(in, i, w.fr.undef.origin[slot][i], use)
	}
	w.define(slot, m)
	return m
}

// useUndefined reports the use of an undefined value.
func (w *warp) useUndefined(in *inst, lane int, from uint32, use string) {
	o := &w.b.origins[from]
	key := faultKey{class: o.class, in: w.source(in), other: o.src}
	if !w.b.l.reports(o.class) {
		return
	}
	if (o.class != bench.UninitialisedRegister || o.taken != nil) && w.b.hold(w, key, lane, from, use) {
		return
	}
	if w.b.faults.again(key, 1) {
		return
	}
	w.reportUndefined(w.source(in), lane, from, use)
}

// reportUndefined adds the fault.
func (w *warp) reportUndefined(src *ptx.Instruction, lane int, from uint32, use string) {
	o := &w.b.origins[from]
	f := w.b.faults.add(faultKey{class: o.class, in: src, other: o.src}, 1)
	if f == nil {
		return
	}
	f.Kernel = w.b.l.prog.name
	f.Site = w.b.site(w.index, lane, src)
	if o.src == nil {
		f.Message = fmt.Sprintf("%s is used %s and was never written", o.name, use)
		return
	}
	if o.space == ptx.SpaceReg {
		f.Message = fmt.Sprintf("%s is used %s: %s at line %d writes it", o.name, use, opcode(o.src), o.src.Pos.Line)
		s := w.b.site(o.warp, o.lane, o.src)
		f.Other = &s
		return
	}
	addr := o.addr
	f.Address, f.Space = &addr, o.space.String()
	f.Message = fmt.Sprintf("a value is used %s that %s at line %d read from %d bytes at %s address %#x, never written%s",
		use, opcode(o.src), o.src.Pos.Line, o.size, o.space, o.addr, w.b.lies(o.space, o.addr))
	s := w.b.site(o.warp, o.lane, o.src)
	f.Other = &s
}

// lies says where a global address lies.
func (b *block) lies(space ptx.Space, addr uint64) string {
	if space != ptx.SpaceGlobal {
		return ""
	}
	return ": " + b.l.dev.mem.describe(addr)
}

// liesAt is lies for a space by its name.
func (b *block) liesAt(space string, addr uint64) string {
	if space != ptx.SpaceGlobal.String() {
		return ""
	}
	return b.lies(ptx.SpaceGlobal, addr)
}

// forget drops undefined registers that nothing will read any more.
func (w *warp) forget() {
	live := w.fr.prog.live[w.pc]
	if live == nil {
		return
	}
	for s, m := range w.u {
		if m != 0 && live[s>>6]>>(s&63)&1 == 0 {
			w.u[s] = 0
			w.undefs--
		}
	}
	if w.undefs == 0 {
		w.setMode()
	}
}

// sharedUndefined is which bytes of a block's shared memory were never
// written, or were written with an undefined value.
type sharedUndefined struct {
	bytes   []byte
	origins map[uint64]uint32 // of bytes that an undefined value was stored to
}

func (s *sharedUndefined) reset() {
	for i := range s.bytes {
		s.bytes[i] = 1
	}
	clear(s.origins)
}

// any says whether some of the bytes are undefined.
func (s *sharedUndefined) any(off uint64, n int) bool {
	p := s.bytes[off:]
	switch n {
	case 4:
		return *at[uint32](p) != 0
	case 8:
		return *at[uint64](p) != 0
	case 16:
		return *at[uint64](p)|*at[uint64](p[8:]) != 0
	}
	for _, x := range p[:n] {
		if x != 0 {
			return true
		}
	}
	return false
}

// define marks bytes as written.
func (s *sharedUndefined) define(off uint64, n int) {
	p := s.bytes[off:]
	switch n {
	case 4:
		*at[uint32](p) = 0
	case 8:
		*at[uint64](p) = 0
	case 16:
		*at[uint64](p), *at[uint64](p[8:]) = 0, 0
	default:
		clear(p[:n])
	}
}

// undefine marks those bytes as undefined that have undefined bits.
func (s *sharedUndefined) undefine(off uint64, n int, bits uint64, from uint32) {
	for i := range n {
		if bits>>(8*i)&0xff != 0 {
			s.bytes[off+uint64(i)] = 1
			if s.origins == nil {
				s.origins = map[uint64]uint32{}
			}
			s.origins[off+uint64(i)] = from
		}
	}
}

// bits is the undefined bits of n bytes.
func (s *sharedUndefined) bits(off uint64, n int) uint64 {
	var v uint64
	for i := range n {
		if s.bytes[off+uint64(i)] != 0 {
			v |= 0xff << (8 * i)
		}
	}
	return v
}

// loadedFrom marks a load's results as undefined where the bytes it read are:
// of a space's bytes by offset, in the lanes good.
func (w *warp) loadedFrom(in *inst, s *sharedUndefined, space ptx.Space, base uint64, off *lanes64, good uint32) {
	m := in.mem
	size := m.bytes()
	for l := good; l != 0; l &= l - 1 {
		i := firstLane(l)
		if s.any(off[i], size) {
			w.undefineLoad(in, s, space, base, i, off[i])
		}
	}
}

func (w *warp) undefineLoad(in *inst, s *sharedUndefined, space ptx.Space, base uint64, lane int, off uint64) {
	m := in.mem
	from, known := uint32(0), false
	for i := range m.bytes() {
		if id, ok := s.origins[off+uint64(i)]; ok && s.bytes[off+uint64(i)] != 0 {
			from, known = id, true
			break
		}
	}
	if !known {
		class := bench.UninitialisedSharedRead
		if space == ptx.SpaceLocal {
			class = bench.UninitialisedRegister
		}
		from = w.b.addOrigin(origin{class: class, src: w.source(in), name: "local memory", space: space, addr: off + base, size: m.bytes(), order: m.order, warp: w.index, lane: lane})
	}
	for j := range m.data {
		o := &m.data[j]
		if o.slot < 0 {
			continue
		}
		bits := s.bits(off+uint64(j*m.size), m.size)
		if m.signed {
			bits = uint64(extend(bits, 8*m.size))
		}
		w.undefine(w.fr.prog.unified(o.k, o.slot), lane, bits, from)
	}
}

// storedTo marks the bytes that a store wrote as defined.
func storedTo(s *sharedUndefined, off *lanes64, size int, good uint32) {
	for l := good; l != 0; l &= l - 1 {
		s.define(off[firstLane(l)], size)
	}
}

// undefinedBytes is the undefined bits of n bytes of an allocation.
func (a *allocation) undefinedBytes(off int64, n int) uint64 {
	var v uint64
	for i := range int64(n) {
		k := off + i
		if atomic.LoadUint64(&a.undef[k>>6])>>(k&63)&1 != 0 {
			v |= 0xff << (8 * i)
		}
	}
	return v
}

// someUndefined says whether some of up to 16 bytes were never written.
func (a *allocation) someUndefined(off int64, n int) bool {
	word := atomic.LoadUint64(&a.undef[off>>6])
	if word == 0 && off&63+int64(n) <= 64 {
		return false
	}
	for k := off; k < off+int64(n); k++ {
		if atomic.LoadUint64(&a.undef[k>>6])>>(k&63)&1 != 0 {
			return true
		}
	}
	return false
}

// defineShared marks bytes as written, where other workers may do so too.
func (a *allocation) defineShared(off, n int64) {
	for n > 0 {
		bit := off & 63
		k := min(64-bit, n)
		mask := (^uint64(0) >> (64 - k)) << bit
		p := &a.undef[off>>6]
		if atomic.LoadUint64(p)&mask != 0 {
			atomic.AndUint64(p, ^mask)
		}
		off += k
		n -= k
	}
}

// loadedGlobal marks a load's results as undefined where the bytes were never
// written.
func (w *warp) loadedGlobal(in *inst, lane int, bits func(off, n int) uint64, addr uint64) {
	m := in.mem
	from := w.b.addOrigin(origin{class: bench.UninitialisedGlobalRead, src: w.source(in), space: ptx.SpaceGlobal, addr: addr, size: m.bytes(), order: m.order, warp: w.index, lane: lane})
	for j := range m.data {
		o := &m.data[j]
		if o.slot < 0 {
			continue
		}
		v := bits(j*m.size, m.size)
		if m.signed {
			v = uint64(extend(v, 8*m.size))
		}
		w.undefine(w.fr.prog.unified(o.k, o.slot), lane, v, from)
	}
}
