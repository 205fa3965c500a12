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
	for warp := range l.Warps() {
		var addresses [32]int
		for lane := range addresses {
			addresses[lane] = p.at(lane, warp)
		}
		wavefronts := Wavefronts(addresses[:], bytes)
		n := l.copies << len(rest)
		t.Instructions += n
		t.Ideal += n * phases(bytes)
		if bytes%bankBytes == 0 || p.wordAligned() {
			t.Actual += n * wavefronts // registers only rotate or permute the banks
			continue
		}
		for g := range n {
			r := p.register(g>>len(rest)<<len(l.reg) | combine(rest, g))
			moved := addresses
			for lane := range moved {
				moved[lane] = moved[lane] ^ r.Xor + r.Add
			}
			t.Actual += Wavefronts(moved[:], bytes)
		}
	}
	return t, true
}

// wordAligned reports whether registers move a thread by whole words.
func (p *places) wordAligned() bool {
	for i := range p.l.reg {
		if !p.bit[i].multipleOf(bankBytes) {
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

// Wavefronts counts the wavefronts of one instruction whose lanes access `bytes`
// bytes at the given addresses, from the definition: phase by phase, bank by bank.
func Wavefronts(addresses []int, bytes int) int {
	lanes := 32 / phases(bytes)
	total := 0
	var words [banks]struct {
		seen [32]int
		n    int
	}
	for first := 0; first < len(addresses); first += lanes {
		worst := 0
		for i := range words {
			words[i].n = 0
		}
		for _, a := range addresses[first:min(first+lanes, len(addresses))] {
			for w := a / bankBytes; w*bankBytes < a+bytes; w++ {
				b := &words[w%banks]
				if !slices.Contains(b.seen[:b.n], w) {
					b.seen[b.n] = w
					b.n++
					worst = max(worst, b.n)
				}
			}
		}
		total += worst
	}
	return total
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
