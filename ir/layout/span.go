package layout

import "math/bits"

// span is a subspace of GF(2)^64 kept in echelon form. Each row remembers, as a
// set of caller-chosen bits, which vectors were XORed to make it.
type span struct {
	rows   [64]struct{ vector, from uint64 }
	rank   int
	kernel []uint64 // combinations of added vectors that give zero
}

// add puts v, made by from, into the span; false if it was in there already, in
// which case the combination that cancels goes to kernel.
func (s *span) add(v, from uint64) bool {
	v, used := s.reduce(v)
	if v == 0 {
		if from != 0 {
			s.kernel = append(s.kernel, used^from)
		}
		return false
	}
	p := bits.Len64(v) - 1
	s.rows[p].vector, s.rows[p].from = v, used^from
	s.rank++
	return true
}

// reduce returns what of v lies outside the span, and the combination that makes
// the rest.
func (s *span) reduce(v uint64) (rest, from uint64) {
	for w := v; w != 0; {
		p := bits.Len64(w) - 1
		if row := &s.rows[p]; row.vector != 0 {
			w ^= row.vector
			v ^= row.vector
			from ^= row.from
		}
		w &= 1<<p - 1
	}
	return v, from
}

func (s *span) has(v uint64) bool {
	rest, _ := s.reduce(v)
	return rest == 0
}
