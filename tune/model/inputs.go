package model

import "github.com/kgen-dev/kgen/codegen/simt"

// Inputs is memory that decides what a program does, by the number of its argument: the
// elements of 32-bit integers, such as lengths and tables of pages. ok is false outside.
type Inputs map[int]func(element int64) (v int64, ok bool)

// integerBytes are an element's.
const integerBytes = 4

// load reads the integer at an address as parameters hold them.
func (m Inputs) load(address int64) (int64, bool) {
	elements := m[int(address>>pointerShift)-1]
	at := address & (1<<pointerShift - 1)
	if elements == nil || at%integerBytes != 0 {
		return 0, false
	}
	return elements(at / integerBytes)
}

// load evaluates a load of one integer a lane: known if it is for every lane that
// executes it.
func (w *walk) load(in *simt.Instr) {
	r, addr, g := in.Results[0], w.get(in.Args[0]), lanes{known: true, n: 1}
	if in.Guard != nil {
		g = w.get(in.Guard)
	}
	otherwise := lanes{known: true}
	if len(in.Args) > 1 {
		otherwise = w.get(in.Args[1])
	}
	if !addr.known || !g.known || !otherwise.known {
		w.set(r, 0, false)
		return
	}
	lane := func(i int) (int64, bool) {
		if in.Guard != nil && (g.at(i)&1 != 0) == in.GuardNot {
			return otherwise.at(i), true
		}
		return w.inputs.load(addr.at(i) + int64(in.Offset))
	}
	if addr.v == nil && g.v == nil && otherwise.v == nil {
		n, ok := lane(0)
		w.set(r, n, ok)
		return
	}
	out := make([]int64, w.size)
	for i := range out {
		n, ok := lane(i)
		if !ok && w.active[i/warpSize]>>(i%warpSize)&1 != 0 {
			w.set(r, 0, false)
			return
		}
		out[i] = n
	}
	copy(w.vector(r), out)
}
