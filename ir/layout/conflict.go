package layout

import (
	"fmt"
	"math/bits"
	"slices"
)

// Shared memory has 32 banks of four bytes and serves a warp's access in phases
// of at most 128 bytes: one for accesses up to four bytes a lane, two half warps
// for eight, four quarter warps for sixteen, one for each matrix of ldmatrix.
// A phase takes a wavefront for each distinct word of its busiest bank.
const (
	banks     = 32
	bankBytes = 4
)

// Traffic is the predicted shared-memory work of one pass of all warps over a tile.
type Traffic struct {
	Instructions int // a warp's access counts once
	Ideal        int // wavefronts without conflicts: the phases
	Actual       int // wavefronts with them
}

// VectorTraffic predicts the loads or stores that Vector plans for maxBytes. ok is
// false where Vector has no answer.
func (s *Shared) VectorTraffic(l *Layout, maxBytes int) (t Traffic, ok bool) {
	p, ok := s.places(l)
	if !ok {
		return Traffic{}, false
	}
	run, rest := p.contiguous(maxBytes)
	bytes := s.elem << len(run)
	perWarp := l.copies << len(rest)
	t.Instructions = perWarp * l.Warps()
	t.Ideal = t.Instructions * phases(bytes)
	if p.wordAligned() {
		// Registers and warps rotate or permute the banks, no more.
		t.Actual = t.Instructions * p.wavefronts(bytes, 0, Place{})
		return t, true
	}
	for warp := range l.Warps() {
		for g := range perWarp {
			t.Actual += p.wavefronts(bytes, warp, p.register(g>>len(rest)<<len(l.reg)|combine(rest, g)))
		}
	}
	return t, true
}

// wavefronts counts those of one access, registers at r, of a warp.
func (p *places) wavefronts(bytes, warp int, r Place) int {
	var addresses [32]int
	for lane := range addresses {
		addresses[lane] = p.at(lane, warp) ^ r.Xor + r.Add
	}
	return Wavefronts(addresses[:], bytes)
}

// wordAligned reports whether registers and warps move a lane by whole words,
// registers inside a vector aside.
func (p *places) wordAligned() bool {
	run, _ := p.contiguous(bankBytes)
	for i, b := range p.bit {
		lane := i >= len(p.l.reg) && i < len(p.l.reg)+LaneBits
		if !lane && !slices.Contains(run, 1<<i) && !b.multipleOf(bankBytes) {
			return false
		}
	}
	return p.repeatsAligned(bankBytes)
}

// MatrixTraffic predicts the ldmatrix or stmatrix instructions of a plan.
func (m *Matrices) MatrixTraffic(warps int) Traffic {
	n := len(m.Moves) * warps
	t := Traffic{Instructions: n, Ideal: n * m.Count}
	var addresses [32]int
	for lane := range addresses {
		var p Place
		for i, b := range m.Thread[:LaneBits] {
			if lane>>i&1 == 1 {
				p = p.plus(b)
			}
		}
		addresses[lane] = p.Xor + p.Add
	}
	t.Actual = n * Wavefronts(addresses[:8*m.Count], 16)
	return t
}

func phases(bytes int) int { return max(1, bytes/bankBytes) }

// Wavefronts counts the wavefronts of one instruction whose at most 32 lanes
// access `bytes` bytes at the given addresses, from the definition: phase by phase,
// bank by bank.
func Wavefronts(addresses []int, bytes int) int {
	lanes := 32 / phases(bytes)
	total := 0
	for first := 0; first < len(addresses); first += lanes {
		var phase phase
		for _, a := range addresses[first:min(first+lanes, len(addresses))] {
			for w := a / bankBytes; w*bankBytes < a+bytes; w++ {
				phase.touch(w)
			}
		}
		total += phase.worst
	}
	return total
}

// phase collects the distinct words of each bank, as lists in one array. A lane of
// an unaligned access touches one word more than its share.
type phase struct {
	head  [banks]uint8 // 1 + index of the bank's last word
	size  [banks]uint8
	words [2 * banks]int
	next  [2 * banks]uint8
	n     int
	worst int
}

func (p *phase) touch(word int) {
	bank := word % banks
	for i := p.head[bank]; i != 0; i = p.next[i-1] {
		if p.words[i-1] == word {
			return
		}
	}
	p.words[p.n], p.next[p.n] = word, p.head[bank]
	p.n++
	p.head[bank] = uint8(p.n)
	p.size[bank]++
	p.worst = max(p.worst, int(p.size[bank]))
}

// Use is a way a shared tile is written or read, for Choose.
type Use struct {
	Layout *Layout
	Matrix bool // ldmatrix or stmatrix if it fits, plain vectors otherwise
	Bytes  int  // widest plain vector; 0 means 16
}

// Choose picks the shared layout of a tile with the fewest wavefronts over its
// uses; between equals it prefers swizzles, wider ones first, then less padding.
// The fastest dimension is order[0].
func Choose(shape, order []int, elemBytes int, uses ...Use) (*Shared, error) {
	plain, err := Padded(shape, order, elemBytes, 0)
	if err != nil {
		return nil, err
	}
	var candidates []*Shared
	for _, swizzle := range []int{128, 64, 32} {
		if s, err := Swizzled(shape, order, elemBytes, swizzle); err == nil {
			candidates = append(candidates, s)
		}
	}
	candidates = append(candidates, plain)
	for _, pad := range []int{4, 8, 16, 32} {
		// A row that keeps its vectors aligned.
		if pad%elemBytes == 0 && bits.TrailingZeros(uint(plain.pitch|16)) <= bits.TrailingZeros(uint(pad)) {
			if s, err := Padded(shape, order, elemBytes, pad); err == nil {
				candidates = append(candidates, s)
			}
		}
	}
	var best *Shared
	var least Traffic
	for _, s := range candidates {
		if t, ok := s.traffic(uses); ok && (best == nil || t.Actual < least.Actual || t.Actual == least.Actual && t.Instructions < least.Instructions) {
			best, least = s, t
		}
	}
	if best == nil {
		return nil, fmt.Errorf("shared layout of %s: no candidate serves all %d uses", shapeText(shape), len(uses))
	}
	return best, nil
}

func (s *Shared) traffic(uses []Use) (sum Traffic, ok bool) {
	for _, u := range uses {
		var t Traffic
		plan, matrix := Matrices{}, false
		if u.Matrix {
			plan, matrix = s.Ldmatrix(u.Layout)
		}
		if matrix {
			t = plan.MatrixTraffic(u.Layout.Warps())
		} else {
			width := u.Bytes
			if width == 0 {
				width = 16
			}
			if t, ok = s.VectorTraffic(u.Layout, width); !ok {
				return Traffic{}, false
			}
		}
		sum.Instructions += t.Instructions
		sum.Ideal += t.Ideal
		sum.Actual += t.Actual
	}
	return sum, true
}
