package simt

// numbering finds an equal pure operation already built in a scope that
// dominates the place being built: a hash table with an undo log, a scope a
// block.
type numbering struct {
	table map[key]*Value
	log   []key
	marks []int
}

// key identifies a pure operation. Operations with more than three operands
// are never numbered.
type key struct {
	op      Op
	typ, rt Type
	sub     uint8
	flags   Flags
	n       uint8
	a, b, c int32
	imm     int64
}

func (n *numbering) init() {
	n.table = make(map[key]*Value, 1024)
}

func keyOf(op Op, t, rt Type, a attrs, args []*Value) key {
	k := key{op: op, typ: t, rt: rt, sub: a.sub, flags: a.flags, imm: a.imm, n: uint8(len(args))}
	if len(args) > 0 {
		k.a = args[0].ID
	}
	if len(args) > 1 {
		k.b = args[1].ID
	}
	if len(args) > 2 {
		k.c = args[2].ID
	}
	if commutes(op) && k.a > k.b {
		k.a, k.b = k.b, k.a
	}
	return k
}

func commutes(op Op) bool {
	switch op {
	case OpAdd, OpMul, OpMulHi, OpMulHiU, OpMulWide, OpMulWideU, OpMad, OpMadWide, OpMadWideU, OpFma, OpMinU, OpMaxU, OpAnd, OpOr, OpXor:
		return true
	}
	return false
}

func (n *numbering) find(k key) *Value { return n.table[k] }

func (n *numbering) add(k key, v *Value) {
	n.table[k] = v
	n.log = append(n.log, k)
}

func (n *numbering) enter() { n.marks = append(n.marks, len(n.log)) }

func (n *numbering) leave() {
	m := n.marks[len(n.marks)-1]
	n.marks = n.marks[:len(n.marks)-1]
	for _, k := range n.log[m:] {
		delete(n.table, k)
	}
	n.log = n.log[:m]
}
