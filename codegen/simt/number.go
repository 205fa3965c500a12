package simt

// numbering finds an equal pure operation already built in a scope that
// dominates the place being built: a hash table with a log, a scope a block.
// Leaving a scope takes out what it added, last first, which leaves an open
// table as it was.
type numbering struct {
	k     *Kernel
	slots []numbered // a power of two, at most half full
	log   []uint32   // slots in the order they were filled
	marks []int
}

// numbered is an operation by its hash and its result's ID plus one; the zero
// numbered is an empty slot.
type numbered struct{ hash, id uint32 }

// newNumbering has room for some operations to begin with.
func newNumbering(k *Kernel, operations int) numbering {
	n := 256
	for n < 2*operations {
		n *= 2
	}
	return numbering{k: k, slots: make([]numbered, n), log: make([]uint32, 0, n/2)}
}

// operation is what identifies a pure operation.
type operation struct {
	op    Op
	t, rt Type
	a     attrs
	args  []*Value
}

// pair is the first two operands' IDs, those of a commutative operation in order.
func (o *operation) pair() (x, y int32) {
	switch len(o.args) {
	case 0:
		return -1, -1
	case 1:
		return o.args[0].ID, -1
	}
	x, y = o.args[0].ID, o.args[1].ID
	if x > y && commutes(o.op) {
		x, y = y, x
	}
	return x, y
}

func (o *operation) hash() uint32 {
	x, y := o.pair()
	h := uint64(o.op) | uint64(o.rt)<<8 | uint64(o.a.sub)<<16 | uint64(o.a.flags)<<24 | uint64(o.t)<<40
	h = (h ^ uint64(uint32(x))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ uint64(uint32(y))) * 0xbf58476d1ce4e5b9
	if len(o.args) > 2 {
		h = (h ^ h>>31 ^ uint64(uint32(o.args[2].ID))) * 0x94d049bb133111eb
	}
	h = (h ^ h>>27 ^ uint64(o.a.imm)) * 0x9e3779b97f4a7c15
	return uint32(h >> 32)
}

// is tells whether v is the operation's result.
func (o *operation) is(v *Value) bool {
	in := v.Def
	if in.Op != o.op || in.Type != o.t || v.Type != o.rt || len(in.Args) != len(o.args) || in.attrs() != o.a {
		return false
	}
	p := operation{op: o.op, args: in.Args}
	x, y := o.pair()
	if px, py := p.pair(); px != x || py != y {
		return false
	}
	for i := 2; i < len(o.args); i++ {
		if in.Args[i] != o.args[i] {
			return false
		}
	}
	return true
}

func commutes(op Op) bool {
	switch op {
	case OpAdd, OpMul, OpMulHi, OpMulHiU, OpMulWide, OpMulWideU, OpMad, OpMadWide, OpMadWideU, OpFma, OpMinU, OpMaxU, OpAnd, OpOr, OpXor:
		return true
	}
	return false
}

// find returns the equal operation's value, or nil and the hash to add it with.
func (n *numbering) find(o *operation) (*Value, uint32) {
	h := o.hash()
	mask := uint32(len(n.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := n.slots[i]
		if s.id == 0 {
			return nil, h
		}
		if s.hash != h {
			continue
		}
		if v := n.k.Value(int32(s.id - 1)); o.is(v) {
			return v, h
		}
	}
}

func (n *numbering) add(h uint32, v *Value) {
	if 2*(len(n.log)+1) > len(n.slots) {
		n.grow()
	}
	n.put(numbered{h, uint32(v.ID) + 1})
}

func (n *numbering) put(s numbered) {
	mask := uint32(len(n.slots) - 1)
	i := s.hash & mask
	for n.slots[i].id != 0 {
		i = (i + 1) & mask
	}
	n.slots[i] = s
	n.log = append(n.log, i)
}

func (n *numbering) grow() {
	old, log := n.slots, n.log
	n.slots, n.log = make([]numbered, 4*len(old)), make([]uint32, 0, 2*len(old))
	for _, i := range log {
		n.put(old[i])
	}
}

func (n *numbering) enter() { n.marks = append(n.marks, len(n.log)) }

func (n *numbering) leave() {
	m := n.marks[len(n.marks)-1]
	n.marks = n.marks[:len(n.marks)-1]
	for len(n.log) > m {
		n.slots[n.log[len(n.log)-1]] = numbered{}
		n.log = n.log[:len(n.log)-1]
	}
}

// rootKey identifies a constant or an input.
type rootKey struct {
	op  Op
	t   Type
	imm int64
}
