package vm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// tensorMMA is tcgen05.mma in all its forms. What it multiplies is in a word
// that the instruction is passed: PTX ISA 9.7.16.4.2.
type tensorMMA struct {
	kind   *productKind
	sparse bool
	ws     bool // weights stay: other layouts of the sums
	shift  bool // A's rows are those below

	d, a, meta, scaleA, scaleB tensorOperand

	aInTensor    bool
	aDesc, bDesc int32
	desc         int32 // slot of the instruction descriptor
	parts        int   // of K, that have scale factors of their own; 0: none have
	disable      []int32
	accumulate   int32 // predicate
	negated      uint32
	scaleD       int   // D is divided by two to this
	columns      int32 // slot of which columns of B count as zeros; -1: none
}

// productKind is a kind of tcgen05.mma: its types, by their codes.
type productKind struct {
	name   string
	k      int // of a dense product
	types  [8]ptx.Type
	sums   [3]ptx.Type
	scaled bool
	packed bool // two elements of 4 bits to a byte
}

var productKinds = []productKind{
	{name: "kind::f16", k: 16, types: [8]ptx.Type{0: ptx.F16, 1: ptx.BF16}, sums: [3]ptx.Type{ptx.F16, ptx.F32}},
	{name: "kind::tf32", k: 8, types: [8]ptx.Type{2: ptx.TF32}, sums: [3]ptx.Type{1: ptx.F32}},
	{name: "kind::f8f6f4", k: 32, types: narrowTypes, sums: [3]ptx.Type{ptx.F16, ptx.F32}},
	{name: "kind::i8", k: 32, types: [8]ptx.Type{0: ptx.U8, 1: ptx.S8}, sums: [3]ptx.Type{2: ptx.S32}},
	{name: "kind::mxf8f6f4", k: 32, types: narrowTypes, sums: [3]ptx.Type{1: ptx.F32}, scaled: true},
	{name: "kind::mxf4", k: 64, types: [8]ptx.Type{1: packedE2M1}, sums: [3]ptx.Type{1: ptx.F32}, scaled: true, packed: true},
	{name: "kind::mxf4nvf4", k: 64, types: [8]ptx.Type{1: packedE2M1}, sums: [3]ptx.Type{1: ptx.F32}, scaled: true, packed: true},
}

var narrowTypes = [8]ptx.Type{0: ptx.E4M3, 1: ptx.E5M2, 3: ptx.E2M3, 4: ptx.E3M2, 5: ptx.E2M1}

func (d *decoder) tensorMMA() {
	op := &tensorMMA{aDesc: -1, columns: -1}
	op.ws = d.has("ws")
	op.sparse = d.has("sp")
	in, t := d.newTensor(kindMasked)
	t.mma = op
	for i := range productKinds {
		if d.has(productKinds[i].name) {
			op.kind = &productKinds[i]
		}
	}
	if op.kind == nil {
		d.refuse("want a kind such as .kind::f16")
	}
	if d.has("block_scale") != op.kind.scaled {
		d.refuse("want .block_scale with the kinds mxf8f6f4, mxf4 and mxf4nvf4, and with no other")
	}
	op.scaleParts(d)
	op.shift = d.has("ashift")
	for i, w := range d.words {
		d.used[i] = d.used[i] || strings.HasPrefix(w, "collector::")
	}
	op.operands(d, in)
	in.fn[modeFull] = issueProducts
	d.emit(in)
}

// scaleParts takes how many scale factors each row has.
func (op *tensorMMA) scaleParts(d *decoder) {
	if !op.kind.scaled {
		return
	}
	op.parts = 1
	if op.kind.packed {
		op.parts = 2
	}
	switch d.take("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32") {
	case "scale_vec::4X", "block16":
		op.parts = 4
	}
}

// operands binds d, a, b {, metadata}, descriptor {, scales} {, mask},
// predicate {, the rest}.
func (op *tensorMMA) operands(d *decoder, in *inst) {
	ops := d.src.Operands
	next := d.taking(&ops)
	d.tensorAddress(in, &op.d, next())
	if a := next(); a.Kind == ptx.OpAddr {
		op.aInTensor = true
		d.tensorAddress(in, &op.a, a)
	} else {
		d.source(in, &op.aDesc, a, ptx.B64, exact)
	}
	d.source(in, &op.bDesc, next(), ptx.B64, exact)
	if op.sparse {
		d.tensorAddress(in, &op.meta, next())
	}
	d.source(in, &op.desc, next(), ptx.U32, exact)
	if op.kind.scaled {
		d.tensorAddress(in, &op.scaleA, next())
		d.tensorAddress(in, &op.scaleB, next())
	}
	o := next()
	if o.Kind == ptx.OpVector {
		op.disable = make([]int32, len(o.Elems()))
		for i := range o.Elems() {
			d.source(in, &op.disable[i], &o.Elems()[i], ptx.B32, exact)
		}
		o = next()
	}
	op.negated = d.predicate(in, &op.accumulate, o)
	if len(ops) > 0 && op.ws {
		d.source(in, &op.columns, next(), ptx.B64, exact)
	} else if len(ops) > 0 {
		if op.scaleD = int(d.integer(next())); op.scaleD < 0 || op.scaleD > 15 {
			d.refuse("scale %d of D: want 0 to 15", op.scaleD)
		}
	}
	if len(ops) > 0 {
		d.refuse("%d operands too many", len(ops))
	}
}

// product is what one tcgen05.mma multiplies.
type product struct {
	op         *tensorMMA
	ctas       []*cta
	m, n, k    int
	at, bt, dt ptx.Type
	negate     bool
	sat        bool
	transA     bool
	transB     bool
	ue4m3      bool
	idA, idB   int // bytes of the words that hold scale factors
	selector   int // column of the metadata
	layout     sumLayout

	d, a, meta, scaleA, scaleB tensorAddress
	shared                     []*matrix // A of each block, if it is there, then B
	accumulate                 bool
	disable                    [2 * tensorLanes / 32]uint32
	zeros                      []bool    // columns of B that count as zeros
	fused                      *fusedSum // nil: sums in the order of K
	shiftB                     int       // the first column of B
}

// sumLayout is where rows of the sums lie in a block's tensor memory: PTX ISA
// 9.7.16.10.5. Where there are several parts, each has an equal share of the
// columns, in other lanes.
type sumLayout struct {
	rows  int // of a block
	half  bool
	parts int
}

// lane is a row's, in the first part.
func (l *sumLayout) lane(row int) int {
	if l.half {
		return row/16*32 + row%16
	}
	return row
}

// step is how many lanes parts are apart.
func (l *sumLayout) step() int { return tensorLanes / l.parts }

// describe reads an instruction descriptor.
func (p *product) describe(v uint32) error {
	op := p.op
	kind := op.kind
	pair := len(p.ctas) == 2
	p.n, p.k = int(v>>17&63)<<3, kind.k
	p.m = int(v>>24&31) << 4
	if kind.scaled {
		p.m = int(v>>27&3) << 7
	}
	if op.sparse {
		p.k *= 2
	}
	code := v >> 10 & 7
	if kind.packed {
		code = v >> 10 & 3
		if v>>31 != 0 {
			return fmt.Errorf("instruction descriptor %#x: the virtual machine has no K of 96", v)
		}
	}
	p.at, p.bt, p.dt = kind.types[v>>7&7], kind.types[code], ptx.F32
	if !kind.scaled {
		if d := v >> 4 & 3; d < 3 {
			p.dt = kind.sums[d]
		} else {
			p.dt = ptx.NoType
		}
	}
	p.negate = (v>>13^v>>14)&1 != 0
	p.transA, p.transB = v>>15&1 != 0, v>>16&1 != 0
	p.sat = v>>3&1 != 0 && p.dt == ptx.S32
	if kind.scaled {
		p.ue4m3 = v>>23&1 == 0
		p.idB, p.idA = int(v>>4&3), int(v>>29&3)
	} else {
		p.selector = int(v & 3)
	}
	switch {
	case p.at == ptx.NoType || p.bt == ptx.NoType || p.dt == ptx.NoType:
		return fmt.Errorf("instruction descriptor %#x: types %d, %d into %d are none of .%s", v, v>>7&7, code, v>>4&3, kind.name)
	case p.dt == ptx.F16 && (p.at == ptx.BF16 || p.bt == ptx.BF16):
		return fmt.Errorf("instruction descriptor %#x: want f32 sums of bf16", v)
	case v>>2&1 != 0 != op.sparse:
		return fmt.Errorf("instruction descriptor %#x: its bit 2 and the instruction say different things about sparsity", v)
	case v>>13&3 != 0 && p.dt == ptx.S32:
		return fmt.Errorf("instruction descriptor %#x: negated integers, want bits 13 and 14 0", v)
	case op.shift && p.m < 128:
		return fmt.Errorf("instruction descriptor %#x: M of %d, want 128 or 256 of shifted rows", v, p.m)
	}
	if err := p.scaleIDs(); err != nil {
		return fmt.Errorf("instruction descriptor %#x: %w", v, err)
	}
	return p.shape(v, pair)
}

// scaleIDs checks which bytes of a word are scale factors, and their type: PTX ISA
// 9.7.16.10.7.
func (p *product) scaleIDs() error {
	n := p.op.parts
	switch {
	case n == 0:
	case p.ue4m3 && n != 4:
		return errors.New("scale factors of .ue4m3 for every 32 elements, want .ue8m0, bit 23 set")
	case p.idA%n != 0:
		return fmt.Errorf("scale factors of A from byte %d on, want a multiple of %d", p.idA, n)
	case p.idB%n != 0:
		return fmt.Errorf("scale factors of B from byte %d on, want a multiple of %d", p.idB, n)
	}
	return nil
}

// shape checks M and N and finds where the sums lie.
func (p *product) shape(v uint32, pair bool) error {
	op := p.op
	l := &p.layout
	l.rows, l.parts = p.m, 1
	least, step := 8, 8
	switch {
	case op.ws && p.m == 32:
		l.parts = 4
	case op.ws && p.m == 64:
		l.parts = 2
	case op.ws && p.m == 128:
	case !op.ws && !pair && p.m == 64 && !op.kind.scaled:
		l.half = true
	case !op.ws && !pair && p.m == 128:
	case pair && p.m == 256:
		l.rows = 128
	case pair && p.m == 128 && op.sparse && !op.kind.scaled:
		l.rows, l.half = 64, true
	case pair && p.m == 128 && !op.sparse:
		l.rows, l.parts = 64, 2
	default:
		return fmt.Errorf("instruction descriptor %#x: M of %d, want %s", v, p.m, p.wantM(pair))
	}
	switch {
	case op.ws:
		if p.n != 64 && p.n != 128 && (p.n != 256 || op.sparse) {
			return fmt.Errorf("instruction descriptor %#x: N of %d, want 64, 128 or, of dense products, 256", v, p.n)
		}
		return nil
	case pair:
		least, step = 16, 16
	}
	if p.dt == ptx.S32 && p.n > 32 {
		step = 16
	}
	bytesAcross := p.transB && heldBits(p.bt) == 8
	if bytesAcross {
		least, step = 16, 16
	}
	if pair && (p.dt == ptx.S32 || bytesAcross) {
		least, step = 32, 32
	}
	if p.n < least || p.n > 256 || p.n%step != 0 {
		return fmt.Errorf("instruction descriptor %#x: N of %d, want a multiple of %d from %d to 256", v, p.n, step, least)
	}
	return nil
}

func (p *product) wantM(pair bool) string {
	switch {
	case p.op.ws:
		return "32, 64 or 128"
	case pair && p.op.kind.scaled && p.op.sparse:
		return "256"
	case pair:
		return "128 or 256"
	case p.op.kind.scaled:
		return "128"
	}
	return "64 or 128"
}

// issueProducts issues the products of the active lanes.
func issueProducts(w *warp, in *inst) {
	for l := w.mask; l != 0; l &= l - 1 {
		w.issueProduct(in, firstLane(l))
	}
}

func (w *warp) issueProduct(in *inst, lane int) {
	op := in.tensor.mma
	p := &product{op: op, ctas: w.pairOf(in, lane)}
	if len(p.ctas) == 0 {
		return
	}
	err := p.describe(w.r[op.desc][lane])
	if err == nil {
		err = p.matrices(w, lane)
	}
	if err != nil {
		w.fault(bench.BadDescriptor, in, lane, "%v", err)
		return
	}
	p.fused = w.b.l.mod.fusedSum("tcgen05", &mmaOp{k: p.k, at: p.at, bt: p.bt, dt: p.dt, scale: &blockScale{ue4m3: p.ue4m3}})
	p.d = op.d.of(w, lane)
	p.accumulate = (w.p[op.accumulate]^op.negated)>>lane&1 != 0
	for i, s := range op.disable {
		p.disable[i] = w.r[s][lane]
	}
	if op.columns >= 0 {
		p.zeroColumns(w.q[op.columns][lane])
	}
	x := w.newTensorWork(tensorProduct, in, lane)
	x.shape = uint32(p.m)<<16 | uint32(p.n)
	uses, ok := p.uses(w, in, lane)
	if !ok || !x.readMatrices(p.shared) {
		return
	}
	for _, u := range uses {
		w.use(x, u.tensorArea, u.write, u.sum)
	}
	w.b.counts.tensorProduct(p)
	x.land = func() { p.run(x) }
	w.b.issueTensor(x)
}

// matrices reads the descriptors of what is in shared memory.
func (p *product) matrices(w *warp, lane int) error {
	op := p.op
	add := func(v uint64, c *cta, first, n, k int, t ptx.Type, transposed bool) error {
		desc, err := decodeTensorDescriptor(v)
		if err != nil {
			return err
		}
		bits := heldBits(t)
		if desc.atoms32 != (transposed && bits == 32) || transposed && bits < 8 {
			return fmt.Errorf("matrix descriptor %#x: want a swizzle of 128 bytes by 32 for matrices of 32-bit elements along M or N, and for no other; two elements to a byte along K", v)
		}
		p.shared = append(p.shared, &matrix{desc: desc, c: c, first: first, n: n, k: k, bits: bits, transposed: transposed})
		return nil
	}
	if op.aInTensor {
		p.a = op.a.of(w, lane)
	} else {
		k := p.k
		if op.sparse {
			k /= 2
		}
		for _, c := range p.ctas {
			if err := add(w.q[op.aDesc][lane], c, 0, p.layout.rows, k, p.at, p.transA); err != nil {
				return err
			}
		}
	}
	if op.columns >= 0 {
		p.shiftB = int(w.q[op.columns][lane] >> 56 & 63)
	}
	for _, c := range p.ctas {
		if err := add(w.q[op.bDesc][lane], c, p.shiftB, p.n/len(p.ctas), p.k, p.bt, p.transB); err != nil {
			return err
		}
	}
	if op.sparse {
		p.meta = op.meta.of(w, lane)
	}
	if op.kind.scaled {
		p.scaleA, p.scaleB = op.scaleA.of(w, lane), op.scaleB.of(w, lane)
	}
	return nil
}

// narrowBits is what an element has, whatever it takes in memory.
func narrowBits(t ptx.Type) int {
	switch t {
	case ptx.E2M3, ptx.E3M2:
		return 6
	case ptx.E2M1, packedE2M1:
		return 4
	}
	return heldBits(t)
}

// uses lists the tensor memory that a product uses; false after a report.
func (p *product) uses(w *warp, in *inst, lane int) (list []tensorUse, ok bool) {
	op, l := p.op, &p.layout
	ok = true
	all := uint8(0xff)
	half := func(a tensorAddress) uint8 { // every other group of lanes, from the address's on
		if !l.half {
			return all
		}
		return 0x55 << (a.lane() / tensorGroup)
	}
	add := func(what string, c *cta, groups uint8, from, n int, sum bool) {
		u := tensorUse{tensorArea: tensorArea{c, groups, from, from + n}, write: sum, sum: sum}
		if ok && w.inside(in, lane, what, &u.tensorArea) {
			list = append(list, u)
			return
		}
		ok = false
	}
	p.checkLane(w, in, lane, "the sums", p.d, &ok)
	if op.sparse {
		p.checkBeside(w, in, lane, "the metadata", p.meta, &ok)
	}
	for _, c := range p.ctas {
		if !ok {
			break
		}
		add("the sums", c, half(p.d), p.d.column(), p.n/l.parts, true)
		if op.aInTensor {
			p.checkLane(w, in, lane, "A", p.a, &ok)
			p.checkBeside(w, in, lane, "A", p.a, &ok)
			add("A", c, half(p.a), p.a.column(), p.columnsOfA(), false)
		}
		if op.sparse {
			add("the metadata", c, all, p.meta.column()+p.selector, p.metaColumns(), false)
		}
		if op.kind.scaled {
			add("A's scale factors", c, all, p.scaleA.column(), (l.rows+31)/32, false)
			add("B's scale factors", c, all, p.scaleB.column(), (p.n/l.parts+31)/32, false)
		}
	}
	return list, ok
}

// checkLane reports an address whose lane is not the first of a layout.
func (p *product) checkLane(w *warp, in *inst, lane int, what string, a tensorAddress, ok *bool) {
	if a.lane() == 0 || p.layout.half && a.lane() == 16 {
		return
	}
	*ok = false
	want := "0"
	if p.layout.half {
		want = "0 or 16"
	}
	w.badTensor(in, lane, uint64(a), "%s at %v in tensor memory: want lane %s", what, a, want)
}

// checkBeside reports an operand of half the lanes that is in others than the sums:
// PTX ISA 9.7.16.10.5.
func (p *product) checkBeside(w *warp, in *inst, lane int, what string, a tensorAddress, ok *bool) {
	if !*ok || !p.layout.half || a.lane() == p.d.lane() {
		return
	}
	*ok = false
	at := uint64(a)
	w.faultAt(bench.BadDescriptor, in, lane, &at, "tensor", "%s at %v in tensor memory: want the lane of the sums, %d", what, a, p.d.lane())
}

// columnsOfA is what A takes in tensor memory.
func (p *product) columnsOfA() int {
	k := p.k
	if p.op.sparse {
		k /= 2
	}
	return k * heldBits(p.at) / 32
}

// zeroColumns finds the columns of B that count as zeros: PTX ISA 9.7.16.4.3.
func (p *product) zeroColumns(v uint64) {
	p.zeros = make([]bool, p.n)
	if v>>39&1 == 0 {
		return
	}
	ones, zeros := int(v>>40&0xff)+1, int(v>>48&0xff)+1
	masks := tensorLanes / p.m
	for i := range masks {
		part := p.zeros[i*p.n/masks : (i+1)*p.n/masks]
		at := int(v >> (8 * i) & 0xff)
		if v>>(32+i)&1 == 0 {
			at += ones
		}
		for j := range part {
			part[j] = (at+j)%(ones+zeros) < ones
		}
	}
}
