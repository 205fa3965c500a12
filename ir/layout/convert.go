package layout

import (
	"fmt"
	"slices"
)

// Kind is what a conversion needs, cheapest first.
type Kind uint8

const (
	None      Kind = iota // the registers serve as they are
	Registers             // another numbering of the thread's own registers
	Shuffles              // exchange among the lanes of a warp
	Memory                // through shared memory
)

func (k Kind) String() string {
	return [...]string{"none", "registers", "shuffles", "shared memory"}[k]
}

// Plan says how a thread that holds a tile in one layout gets it in another.
type Plan struct {
	Kind Kind
	// Table gives for each register of the destination the source's register it
	// equals (None, Registers).
	Table []int
	// Exchange describes the shuffles (Shuffles).
	Exchange *Exchange
}

// Exchange moves elements among the lanes of each warp, in three steps:
//
//  1. Pre: select stages over the source registers.
//  2. Rounds: in each, every lane offers one register and reads another lane's.
//  3. Post: select stages over the rounds' results.
//
// The registers of one repeat copy are exchanged alike: copy c of the destination
// comes from copy Copies[c] of the source. Within a copy register numbers are
// below SourceRegisters, round results below len(Results).
type Exchange struct {
	SourceRegisters int
	Copies          []int
	// Pre: for each stage in turn, new[j] = old[j ^ Xor] in threads where the parity
	// of (index of the thread in the CTA & Threads) is odd, new[j] = old[j] elsewhere.
	Pre []Select
	// Rounds are the shuffles. A round whose source is the lane itself is a move.
	Rounds []Round
	// Lane and Warp give the source lane: the XOR, over the set bits i of the lane's
	// (and warp's) index, of Lane[i] (and Warp[i]), and of the round's own Lane.
	Lane [LaneBits]int
	Warp []int
	// Results names the round that first fills slot k; Post then selects among
	// slots. Its length is a power of two that may exceed the destination's
	// registers: slots beyond them only feed Post.
	Results []int
	Post    []Select
	// Destination registers of a copy: the first of the slots after Post.
	Registers int
	// Packed is how many consecutive registers always travel together (a power of
	// two): 16-bit elements with Packed >= 2 are shuffled two at a time.
	Packed int
}

// Select is a stage that exchanges values between register numbers that differ by
// Xor, in threads where the parity of index & Threads is odd.
type Select struct {
	Threads int
	Xor     int
}

// Round is one shuffle: register From (after Pre) of the lane that Exchange.Lane
// and Lane name.
type Round struct {
	From int
	Lane int
}

// Width is how many lanes read among themselves, all of them the same one: the lane whose
// number is a round's Lane, of their own group of that many. ok is false where lanes of a
// group read different ones.
func (x *Exchange) Width() (width int, ok bool) {
	if slices.ContainsFunc(x.Warp, func(w int) bool { return w != 0 }) {
		return 0, false
	}
	bits := 0
	for bits < LaneBits && x.Lane[bits] == 0 {
		bits++
	}
	for i := bits; i < LaneBits; i++ {
		if x.Lane[i] != 1<<i {
			return 0, false
		}
	}
	width = 1 << bits
	return width, !slices.ContainsFunc(x.Rounds, func(r Round) bool { return r.Lane >= width })
}

// Identity reports whether every thread reads its own registers, so that no
// shuffle is emitted for a round whose Lane is zero.
func (x *Exchange) Identity() bool {
	for i, v := range x.Lane {
		if v != 1<<i {
			return false
		}
	}
	return !slices.ContainsFunc(x.Warp, func(v int) bool { return v != 0 })
}

// Shuffles returns the number of shuffle instructions for elements of `bits` bits,
// all copies together, 16-bit and 8-bit elements packed where possible.
func (x *Exchange) Shuffles(bits int) int {
	n := 0
	identity := x.Identity()
	for _, r := range x.Rounds {
		if !identity || r.Lane != 0 {
			n++
		}
	}
	pack := 1
	for pack*bits < 32 && pack < x.Packed {
		pack *= 2
	}
	return n * len(x.Copies) / pack * max(1, bits/32)
}

// Selects returns the number of two-way selects of the Pre and Post stages, all
// copies together.
func (x *Exchange) Selects() int {
	return len(x.Copies) * (len(x.Pre)*x.SourceRegisters + len(x.Post)*len(x.Results))
}

// Convert plans the change of layout of a tile. It finds the cheapest kind that
// serves, copies of elements in src included: enough is that the data lies in the
// same thread, or the same warp. Both layouts must have the same shape and number
// of warps (what a verifier has checked): otherwise Convert panics.
func Convert(src, dst *Layout) Plan {
	if !slices.Equal(src.shape, dst.shape) || src.Warps() != dst.Warps() {
		panic(fmt.Sprintf("layout: convert %v to %v: want one shape and number of warps", src, dst))
	}
	if table, ok := Fetch(src, dst); ok {
		for d, s := range table {
			if d != s || len(table) != src.Registers() {
				return Plan{Kind: Registers, Table: table}
			}
		}
		return Plan{Kind: None, Table: table}
	}
	if x := exchange(src, dst); x != nil {
		return Plan{Kind: Shuffles, Exchange: x}
	}
	return Plan{Kind: Memory}
}

// linear is the map from destination to source places inside a warp: where bit i
// of a register, lane or warp number comes from. Values hold the source's lane in
// the low bits and its register above.
type linear struct {
	reg  []uint64
	lane [LaneBits]uint64
	warp []uint64
}

const laneMask = 1<<LaneBits - 1

// route finds where each destination bit's element lies in the source's warp; ok
// is false if another warp holds it. It prefers the thread's own registers. kernel
// spans the places of the source that hold what place zero holds.
func route(src, dst *Layout) (m linear, kernel []uint64, ok bool) {
	var own, warp span
	for i, b := range src.lane {
		warp.add(uint64(b), 1<<i)
	}
	for i, b := range src.reg {
		warp.add(uint64(b), 1<<(LaneBits+i))
		own.add(uint64(b), 1<<(LaneBits+i))
	}
	ok = true
	find := func(c Coord) uint64 {
		if rest, from := own.reduce(uint64(c)); rest == 0 {
			return from
		}
		rest, from := warp.reduce(uint64(c))
		ok = ok && rest == 0
		return from
	}
	for _, b := range dst.reg {
		m.reg = append(m.reg, find(b))
	}
	for i, b := range dst.lane {
		if rest, from := own.reduce(uint64(b ^ src.lane[i])); rest == 0 {
			m.lane[i] = 1<<i | from
		} else {
			m.lane[i] = find(b)
		}
	}
	for i, b := range dst.warp {
		m.warp = append(m.warp, find(b^src.warp[i]))
	}
	return m, warp.kernel, ok
}

// exchange plans shuffles. Write the source place of destination register r, lane
// l as lane = A r + B l, register = C r + D l. In round k lane l receives register
// k + E l, so it reads lane A k + (B + A E) l; what a lane sends must depend on the
// sender alone, that is, the kernel of B' = B + A E must lie in the kernel of
// D' = D + C E. E grows until that holds; the sender then picks register
// C k + F(lane + A k) with F B' = D'.
func exchange(src, dst *Layout) *Exchange {
	m, kernel, ok := route(src, dst)
	if !ok || src.part != dst.part {
		return nil
	}
	post := m.settle(kernel)
	x := &Exchange{
		SourceRegisters: 1 << len(src.reg),
		Registers:       1 << len(dst.reg),
		Warp:            make([]int, len(m.warp)),
	}
	for c := range dst.copies {
		x.Copies = append(x.Copies, src.copyOf(dst.repeatCoord(c)))
	}
	var senders span // B' l made by D' l
	for i, v := range m.lane {
		x.Lane[i] = int(v & laneMask)
		senders.add(v&laneMask, v>>LaneBits)
	}
	sent := func(lane uint64) int { // F
		_, reg := senders.reduce(lane)
		return int(reg)
	}
	pre := make([]int, LaneBits+len(m.warp))
	for i := range LaneBits {
		pre[i] = sent(1 << i)
	}
	for i, v := range m.warp {
		x.Warp[i] = int(v & laneMask)
		pre[LaneBits+i] = int(v>>LaneBits) ^ sent(v&laneMask)
	}
	x.Pre = selects(pre)
	x.Post = selects(post)
	x.rounds(&m, sent)
	x.Packed = x.packed(&m)
	return x
}

// settle extends m until what a lane sends depends on the sender alone. It returns
// E: which register numbers each lane bit XORs into the round it fills.
func (m *linear) settle(kernel []uint64) (post []int) {
	post = make([]int, LaneBits)
	for i := m.ambiguous(); i >= 0; i = m.ambiguous() {
		var lanes span
		for _, b := range m.lane {
			lanes.add(b&laneMask, 0)
		}
		outside := func(w uint64) bool { return !lanes.has(w & laneMask) }
		if k := slices.IndexFunc(kernel, outside); k >= 0 {
			m.lane[i] ^= kernel[k]
			continue
		}
		r := slices.IndexFunc(m.reg, outside)
		if r < 0 {
			// No register of the destination lies that way: receive a spare one.
			spare := uint64(1)
			for !outside(spare) {
				spare <<= 1
			}
			r = len(m.reg)
			m.reg = append(m.reg, spare)
		}
		m.lane[i] ^= m.reg[r]
		post[i] ^= 1 << r
	}
	return post
}

// ambiguous returns a lane bit that, with lower ones, changes the register to send
// but not the lane that sends it; -1 if there is none.
func (m *linear) ambiguous() int {
	var lanes span
	for i, v := range m.lane {
		if rest, set := lanes.reduce(v & laneMask); rest == 0 {
			reg := v >> LaneBits
			for j, w := range m.lane[:i] {
				reg ^= w >> LaneBits & -(set >> j & 1)
			}
			if reg != 0 {
				return i
			}
		}
		lanes.add(v&laneMask, 1<<i)
	}
	return -1
}

// selects turns a linear map from thread bits to register XORs into select
// stages, one for each dimension of its image.
func selects(columns []int) []Select {
	var s span
	var stages []Select
	for _, c := range columns {
		if rest, _ := s.reduce(uint64(c)); rest != 0 {
			s.add(uint64(c), 1<<len(stages))
			stages = append(stages, Select{Xor: c})
		}
	}
	for i, c := range columns {
		_, from := s.reduce(uint64(c))
		for j := range stages {
			stages[j].Threads |= int(from>>j&1) << i
		}
	}
	return stages
}

// rounds lists the shuffles bit by bit of the slot's number; a bit that repeats a
// combination of lower ones reads their rounds again.
func (x *Exchange) rounds(m *linear, sent func(uint64) int) {
	x.Rounds, x.Results = []Round{{}}, []int{0}
	var seen span
	for i, v := range m.reg {
		step := Round{From: int(v>>LaneBits) ^ sent(v&laneMask), Lane: int(v & laneMask)}
		key := uint64(step.From)<<LaneBits | uint64(step.Lane)
		slots, rounds := len(x.Results), len(x.Rounds)
		if rest, same := seen.reduce(key); rest == 0 {
			for k := range slots {
				x.Results = append(x.Results, x.Results[k^int(same)])
			}
			continue
		}
		seen.add(key, 1<<i)
		for _, r := range x.Rounds[:rounds] {
			x.Rounds = append(x.Rounds, Round{From: r.From ^ step.From, Lane: r.Lane ^ step.Lane})
		}
		for k := range slots {
			x.Results = append(x.Results, x.Results[k]+rounds)
		}
	}
}

// packed counts the low register bits that pass through unchanged.
func (x *Exchange) packed(m *linear) int {
	touched := 0
	for _, s := range x.Pre {
		touched |= s.Xor
	}
	for _, s := range x.Post {
		touched |= s.Xor
	}
	n := 0
	for ; n < len(m.reg) && touched>>n&1 == 0; n++ {
		if m.reg[n] != 1<<(LaneBits+n) {
			break
		}
		for i, v := range m.reg {
			if i != n && v>>(LaneBits+n)&1 == 1 {
				return 1 << n
			}
		}
	}
	return 1 << n
}
