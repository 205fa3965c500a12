package vm

import (
	"math"
	"strconv"

	"github.com/kgen-dev/kgen/codegen/ptx"
)

// tensorMove is tcgen05.ld or st: registers of a warp from or to tensor memory.
type tensorMove struct {
	store  bool
	shape  *moveShape
	times  int
	halves bool    // two 16-bit halves of a register are in two columns
	split  int     // 16x32bx2: columns from the first half of the lanes to the second
	regs   []int32 // slots
	red    *tensorReduction
}

// tensorReduction is ld.red's: the least or greatest of a thread's registers.
type tensorReduction struct {
	dst      int32
	typ      ptx.Type
	max      bool
	abs, nan bool
}

// moveShape is how the registers of a warp lie in tensor memory: PTX ISA
// 9.7.16.2.3.1.
type moveShape struct {
	name    string
	lanes   int // of tensor memory
	columns int // that one repetition takes
	regs    int // of a thread, in one repetition
	at      func(thread, reg int) (lane, column int)
}

var moveShapes = []moveShape{
	{"32x32b", 32, 1, 1, func(t, r int) (int, int) { return t, r }},
	{"16x64b", 16, 2, 1, func(t, r int) (int, int) { return t>>2 + 8*(t&1), t>>1&1 + 2*r }},
	{"16x128b", 16, 4, 2, func(t, r int) (int, int) { return t>>2 + 8*(r&1), t&3 + 4*(r>>1) }},
	{"16x256b", 16, 8, 4, func(t, r int) (int, int) { return t>>2 + 8*(r>>1&1), 2*(t&3) + r&1 + 8*(r>>2) }},
	{"16x32bx2", 16, 1, 1, func(t, r int) (int, int) { return t & 15, r }},
}

func (d *decoder) tensorMove(store bool) {
	in, op := d.newTensor(kindMasked)
	m := &tensorMove{store: store}
	op.move = m
	reduces := d.has("red")
	d.aligned()
	for i := range moveShapes {
		if d.has(moveShapes[i].name) {
			m.shape = &moveShapes[i]
		}
	}
	if m.shape == nil {
		d.refuse("want a shape such as .32x32b")
	}
	times := d.take("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")
	if times == "" {
		d.refuse("want .x1 to .x128")
	}
	m.times, _ = strconv.Atoi(times[1:])
	m.halves = d.take("pack::16b", "unpack::16b") != ""
	if reduces {
		m.red = &tensorReduction{max: d.take("min", "max") == "max", abs: d.has("abs"), nan: d.has("NaN")}
	}
	t := d.typ()
	ops := d.src.Operands
	want := 2
	if m.shape.name == "16x32bx2" {
		want++
	}
	if reduces {
		want++
	}
	d.operands(want, want)
	if store {
		d.tensorAddress(in, &op.addr, &ops[0])
		m.registers(d, in, &ops[len(ops)-1])
		ops = ops[1:]
	} else {
		m.registers(d, in, &ops[0])
		ops = ops[1:]
		if reduces {
			m.red.typ = t
			d.destination(in, &m.red.dst, &ops[0], ptx.B32, exact)
			ops = ops[1:]
		}
		d.tensorAddress(in, &op.addr, &ops[0])
		ops = ops[1:]
	}
	if m.shape.name == "16x32bx2" {
		if store {
			m.split = int(d.integer(&ops[0]))
		} else {
			m.split = int(d.integer(&ops[len(ops)-1]))
		}
	}
	in.rule = ruleTensorLoad
	in.fn[modeFull] = tensorLoadRegisters
	if store {
		in.rule = ruleTensorStore
		in.fn[modeFull] = tensorStoreRegisters
	}
	d.emit(in)
}

// registers binds the registers that are moved.
func (m *tensorMove) registers(d *decoder, in *inst, o *ptx.Operand) {
	e := elements(o)
	if want := m.times * m.shape.regs; len(e) != want {
		d.refuse("%d registers: want %d", len(e), want)
	}
	m.regs = make([]int32, len(e))
	for i := range e {
		if m.store {
			d.source(in, &m.regs[i], &e[i], ptx.B32, exact)
		} else {
			d.destination(in, &m.regs[i], &e[i], ptx.B32, exact)
		}
	}
}

// width is the columns that a move takes, of each half where there are two.
func (m *tensorMove) width() int {
	n := m.times * m.shape.columns
	if m.halves {
		n *= 2
	}
	return n
}

// base is where a move begins; false after a report.
func (w *warp) moveBase(in *inst) (a tensorAddress, areas []tensorArea, ok bool) {
	m := in.tensor.move
	a = in.tensor.addr.of(w, 0)
	at := uint64(a)
	for lane := range warpSize {
		if o := in.tensor.addr.of(w, lane); o != a {
			w.badTensor(in, lane, at, "tensor memory at %v in thread 0, at %v in thread %d of the warp: want one address", a, o, lane)
			return a, nil, false
		}
	}
	quarter := w.number & 3
	if lane := a.lane(); lane/warpSize != quarter || lane%m.shape.lanes != 0 {
		w.badTensor(in, 0, at, "tensor memory at %v: warp %d reaches lanes %d to %d, with .%s from a multiple of %d on",
			a, w.number, warpSize*quarter, warpSize*quarter+31, m.shape.name, m.shape.lanes)
		return a, nil, false
	}
	areas = append(areas, lanesArea(w.cta, a.lane(), m.shape.lanes, a.column(), m.width()))
	if m.shape.name == "16x32bx2" {
		areas = append(areas, lanesArea(w.cta, a.lane(), m.shape.lanes, a.column()+m.split, m.width()))
	}
	for i := range areas {
		if !w.inside(in, 0, opcode(w.source(in)), &areas[i]) {
			return a, nil, false
		}
	}
	return a, areas, true
}

// words calls f for the words of tensor memory that a register of a thread is
// in: where they are, and the bytes of the word that are bytes of the register
// from shift on.
func (m *tensorMove) words(a tensorAddress, thread, reg int, f func(lane, column int, which uint8, shift int)) {
	lane, column := m.shape.at(thread, reg)
	lane += a.lane()
	if !m.halves {
		f(lane, a.column()+column+m.half(thread), 0xf, 0)
		return
	}
	column = a.column() + 2*column + m.half(thread)
	f(lane, column, 3, 0)
	f(lane, column+1, 3, 2)
}

// half is the columns that a thread's part of 16x32bx2 lies further on.
func (m *tensorMove) half(thread int) int {
	if thread < 16 {
		return 0
	}
	return m.split
}

// tensorLoadRegisters is ld. The registers hold their values at once: whoever
// uses them waits for them (PTX ISA 9.7.16.6.4.5). That tensor memory is read
// counts as under way until the warp waits.
func tensorLoadRegisters(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	m := in.tensor.move
	a, areas, ok := w.moveBase(in)
	if !ok {
		for _, s := range m.regs {
			w.r[s] = lanes32{}
		}
		return
	}
	x := w.newTensorWork(tensorLoad, in, 0)
	sound := true
	for _, area := range areas {
		sound = w.use(x, area, false, false) && sound
	}
	w.crowd(len(w.tensorLoads), 0)
	w.tensorLoads = append(w.tensorLoads, x)
	t := w.cta.tensor
	for i, s := range m.regs {
		for lane := range warpSize {
			w.loadTensorWord(in, t, a, lane, i, s, sound)
		}
	}
	if m.red != nil {
		w.reduceTensor(m)
	}
}

// loadTensorWord brings one register of a thread. What is read of bytes that a
// race was reported for counts as defined.
func (w *warp) loadTensorWord(in *inst, t *tensorMemory, a tensorAddress, thread, reg int, slot int32, sound bool) {
	m := in.tensor.move
	var v uint32
	var bad uint64
	var from uint32
	m.words(a, thread, reg, func(lane, column int, which uint8, shift int) {
		v |= t.words[lane][column] & byteMask(which) << (8 * shift)
		if u := t.undef[lane][column] & which; u != 0 && w.u != nil && sound {
			bad |= uint64(byteMask(u)) << (8 * shift)
			from = w.undefinedWord(t, lane, column, w.source(in))
		}
	})
	w.r[slot][thread] = v
	if bad != 0 {
		w.undefine(w.fr.prog.unified(class32, slot), thread, bad, from)
	}
}

// reduceTensor is what ld.red adds to a load.
func (w *warp) reduceTensor(m *tensorMove) {
	r := m.red
	for lane := range warpSize {
		v := w.r[m.regs[0]][lane]
		if r.abs {
			v &^= 1 << 31
		}
		for _, s := range m.regs[1:] {
			v = r.of(v, w.r[s][lane])
		}
		if r.dst >= 0 {
			w.r[r.dst][lane] = v
		}
	}
	if w.u == nil || r.dst < 0 {
		return
	}
	p := w.fr.prog
	to := p.unified(class32, r.dst)
	w.define(to, allLanes)
	for _, s := range m.regs {
		u := p.unified(class32, s)
		for l := w.u[u]; l != 0; l &= l - 1 {
			lane := firstLane(l)
			w.undefine(to, lane, ^uint64(0), w.fr.undef.origin[u][lane])
		}
	}
}

// of is the lesser or greater of two registers.
func (r *tensorReduction) of(a, b uint32) uint32 {
	switch r.typ {
	case ptx.S32:
		if int32(a) < int32(b) == r.max {
			return b
		}
		return a
	case ptx.U32:
		if a < b == r.max {
			return b
		}
		return a
	}
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	if r.abs {
		x, y = math.Float32frombits(a&^(1<<31)), math.Float32frombits(b&^(1<<31))
	}
	switch {
	case r.nan && (x != x || y != y), x != x && y != y:
		return math.Float32bits(canonicalNaN)
	case x != x:
		return math.Float32bits(y)
	case y != y:
		return math.Float32bits(x)
	case r.max:
		return math.Float32bits(max(x, y))
	}
	return math.Float32bits(min(x, y))
}

// tensorStoreRegisters is st: what the registers hold now appears in tensor
// memory by the time the warp waits for it.
func tensorStoreRegisters(w *warp, in *inst) {
	if !w.together(in) {
		return
	}
	m := in.tensor.move
	a, areas, ok := w.moveBase(in)
	if !ok {
		return
	}
	x := w.newTensorWork(tensorStore, in, 0)
	for _, area := range areas {
		w.use(x, area, true, false)
	}
	v := make([]lanes32, len(m.regs))
	for i, s := range m.regs {
		v[i] = w.r[s]
	}
	x.land = w.tensorStoreOf(m, a, v, w.undefinedRegisters(m.regs))
	w.crowd(len(w.tensorStores), 0)
	w.tensorStores = append(w.tensorStores, x)
	if w.b.landsEarly() {
		for _, e := range w.tensorStores {
			w.b.landTensor(e)
		}
	}
}

// undefinedLane is the undefined bits of a register's lane.
type undefinedLane struct {
	bits uint32
	from uint32
}

// undefinedRegisters is which bits of registers are undefined: by register and
// lane; nil where none is.
func (w *warp) undefinedRegisters(regs []int32) (all map[int]undefinedLane) {
	if w.undefs == 0 {
		return nil
	}
	for i, s := range regs {
		u := w.fr.prog.unified(class32, s)
		for l := w.u[u]; l != 0; l &= l - 1 {
			lane := firstLane(l)
			if all == nil {
				all = map[int]undefinedLane{}
			}
			all[i*warpSize+lane] = undefinedLane{uint32(w.fr.undef.bits[u][lane]), w.fr.undef.origin[u][lane]}
		}
	}
	return all
}

// tensorStoreOf writes registers to tensor memory.
func (w *warp) tensorStoreOf(m *tensorMove, a tensorAddress, v []lanes32, undef map[int]undefinedLane) func() {
	t := w.cta.tensor
	return func() {
		for i := range v {
			for lane, x := range &v[i] {
				u := undef[i*warpSize+lane]
				m.words(a, lane, i, func(lane, column int, which uint8, shift int) {
					t.set(lane, column, x>>(8*shift), which, someBytes(u.bits>>(8*shift)), u.from)
					if m.halves { // the upper half of a column is not used
						t.set(lane, column, 0, 0xc, 0, 0)
					}
				})
			}
		}
	}
}

// someBytes is the bytes that have some of the bits.
func someBytes(v uint32) (m uint8) {
	for i := range 4 {
		if v>>(8*i)&0xff != 0 {
			m |= 1 << i
		}
	}
	return m
}

// undefinedTensorLoad reports the address.
func undefinedTensorLoad(w *warp, in *inst, m uint32) {
	for _, s := range in.uses {
		w.checkLanes(in, s, m, "as an address in tensor memory")
	}
	for _, s := range in.defs {
		w.define(s, w.mask)
	}
	w.plain(in)
}

// undefinedTensorStore reports the address; tensor memory remembers what is
// undefined of the registers.
func undefinedTensorStore(w *warp, in *inst, m uint32) {
	w.checkLanes(in, w.fr.prog.unified(class32, in.tensor.addr.slot), m, "as an address in tensor memory")
	w.plain(in)
}
