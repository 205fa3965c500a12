package ptx

import (
	"strconv"
	"strings"
)

// sparseCounts is how many 32-bit registers the parts of compressed data take
// in a thread.
type sparseCounts struct{ meta, packed, data int }

// countSparse counts the registers of spcompress, spdecompress and tcgen05.ld
// with spcompress by their modifiers: the elements' size, that of an index, the
// ratio m of n and the repetition: PTX ISA 9.4, 9.7.10.30 and 31, 9.7.18.8.3.
func countSparse(name string, mods []string) (n sparseCounts) {
	times, of, among := 0, 0, 0
	var bits []int
	for _, m := range mods {
		switch {
		case strings.HasPrefix(m, "sp::"):
			a, b, _ := strings.Cut(m[4:], ":")
			of, _ = strconv.Atoi(a)
			among, _ = strconv.Atoi(b)
		case m[0] == 'x':
			times, _ = strconv.Atoi(m[1:])
		case m[0] == 'b':
			if v, err := strconv.Atoi(m[1:]); err == nil {
				bits = append(bits, v)
			}
		}
	}
	registers := func(n int) int { return (n + 31) / 32 }
	switch {
	case name == "tcgen05.ld" && of > 0:
		return sparseCounts{meta: registers(times), packed: times / 2}
	case len(bits) != 2:
		return n
	case name == "spcompress":
		return sparseCounts{meta: (times*bits[1] + bits[0] - 1) / bits[0], packed: times, data: 2 * times}
	case name == "spdecompress" && of*bits[0] <= 32 && 1<<bits[1] >= among:
		return sparseCounts{registers(of * bits[1] * times), registers(of * bits[0] * times), registers(among * bits[0] * times)}
	}
	return n
}

// The counts that operands of the table write as {meta}, {packed} and {data}.
const (
	countMeta = -1 - iota
	countPacked
	countData
)

var namedCounts = map[string]int{"meta": countMeta, "packed": countPacked, "data": countData}

// countable says whether modifiers that say how many registers an operand has
// say so.
func (r *reading) countable(f *Spec) bool {
	for i := range r.overrides {
		if r.overrides[i].count < 0 {
			return false
		}
	}
	for i := range f.operands {
		if o := &f.operands[i]; o.count < 0 && r.registers(o) == 0 {
			return false
		}
	}
	return true
}

// registers is how many a vector of registers has.
func (r *reading) registers(s *operandSpec) int {
	switch s.count {
	case countMeta:
		return r.sparse.meta
	case countPacked:
		return r.sparse.packed
	case countData:
		return r.sparse.data
	}
	return s.count
}
