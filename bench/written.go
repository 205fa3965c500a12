package bench

import (
	"bytes"

	"github.com/kgen-dev/kgen/bench/numcheck"
)

// Tracker is a Device that knows which bytes of its buffers were never written. On others
// such buffers are filled with what cannot be right.
type Tracker interface {
	Device

	// Unwritten has a bit for each byte of a buffer, the first in the lowest of the first
	// word, that is set where the byte was never written; nil where all were.
	Unwritten(b Buffer) ([]uint64, error)
}

// poison is what a buffer holds at first that was never written, on a device that does not
// track: an element that keeps it is not right, unless nothing is wanted of it.
func (b *CaseBuffer) poison(tol numcheck.Tolerance) []byte {
	p := bytes.Repeat([]byte{0xff}, int(b.Size()))
	if b.Want == nil {
		return p
	}
	size := b.Type.Size()
	for i := range b.elements() {
		at := i * size
		if b.unset(i) || !tol.Allows(b.Type.At(p, i), b.Type.At(b.Want, i)) {
			continue
		}
		for k := range size {
			p[at+k] = 0x80
		}
	}
	return p
}

// elements is how many there are.
func (b *CaseBuffer) elements() int { return int(b.Size()) / b.Type.Size() }

// unset says whether an element need not be written.
func (b *CaseBuffer) unset(i int) bool { return b.Unset != nil && b.Unset[i] }

// unwritten tells which elements of a buffer were not written in full; nil where all were.
// A device that does not track knows those that hold what they held at first.
func (r *caseRun) unwritten(i int, got []byte) ([]bool, error) {
	b := &r.c.Buffers[i]
	if b.Data != nil {
		return nil, nil
	}
	size := b.Type.Size()
	missing := func(at int) bool { return bytes.Equal(got[at:at+size], r.first[i][at:at+size]) }
	if t, ok := r.dev.(Tracker); ok {
		bits, err := t.Unwritten(r.buffers[i])
		if err != nil || bits == nil {
			return nil, err
		}
		missing = func(at int) bool {
			for k := at; k < at+size; k++ {
				if bits[k>>6]>>(k&63)&1 != 0 {
					return true
				}
			}
			return false
		}
	}
	var out []bool
	for e := range b.elements() {
		if !missing(e * size) {
			continue
		}
		if out == nil {
			out = make([]bool, b.elements())
		}
		out[e] = true
	}
	return out, nil
}

// compareBuffer compares a buffer with what is wanted. What was never written is wrong, but
// for elements that need not be; of a run of some blocks only what they changed is compared.
func (r *caseRun) compareBuffer(i int, got []byte, never []bool) (BufferResult, error) {
	b := &r.c.Buffers[i]
	res := BufferResult{Arg: b.Arg, Name: b.Name}
	want, some := b.Want, r.opt.Blocks != nil
	size := b.Type.Size()
	_, tracks := r.dev.(Tracker) // otherwise poison is wrong by itself, and may be what a kernel wrote
	if some || never != nil {
		want = bytes.Clone(want)
	}
	var missing int64
	var first *numcheck.Mismatch
	for e := range b.elements() {
		at := e * size
		lost := never != nil && never[e] && (tracks || some || b.unset(e))
		same := some && b.Data != nil && bytes.Equal(got[at:at+size], b.Data[at:at+size])
		if !lost && !same {
			continue
		}
		copy(want[at:at+size], got[at:at+size]) // it counts here alone
		switch {
		case some:
			res.NotCompared++
		case b.unset(e):
		default:
			if missing++; first == nil {
				first = &numcheck.Mismatch{Index: int64(e), Got: b.Type.At(got, e), Want: b.Type.At(b.Want, e), Unwritten: true}
			}
		}
	}
	c, err := numcheck.Compare(b.Type, got, want, r.c.Tolerance, 1)
	if err != nil {
		return res, err
	}
	if len(c.First) > 0 && (first == nil || c.First[0].Index < first.Index) {
		first = &c.First[0]
		first.Unset = b.unset(int(first.Index))
	}
	res.Mismatches, res.MaxAbs, res.First = c.Mismatches+missing, c.MaxAbs, first
	if c.MaxRel > 0 || c.MaxAbs == 0 {
		res.MaxRel = &c.MaxRel
	}
	return res, nil
}
