package model

import (
	"math/bits"
	"slices"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/roofline"
)

// warpSize is the lanes of a warp.
const warpSize = target.WarpSize

// maxPointers is how many pointer parameters have their traffic told apart; those of
// later ones count as the last's.
const maxPointers = 12

// Access counts the accesses of one kind.
type Access struct {
	Requests int64 // warp instructions with a lane that accesses, rows of boxes by tensor maps
	Bytes    int64 // that the lanes ask for
	Sectors  int64 // different 32-byte sectors of each request, added up
}

// Counts are what blocks of threads do, counted from the thread program with the
// addresses and masks that a launch's arguments give.
type Counts struct {
	Mma      [simt.NumMmas]int64                                   // warp instructions by form
	Wgmma    [simt.NumWgmmas][simt.MaxWgmmaN/simt.WgmmaN + 1]int64 // the same, by form and eighth of their columns
	MUFU     int64                                                 // thread results of the special function unit
	Barriers int64                                                 // waited at, by warps

	Loads, Stores, Copies Access             // of global memory
	Writes                Access             // of the same, by tensor maps
	Read                  [maxPointers]int64 // bytes of the sectors read, by pointer parameter

	SharedLoads, SharedStores, SharedMatrix, SharedCopies int64 // wavefronts
	SharedIdeal                                           int64 // of them, what the bytes need without bank conflicts

	// Unknown counts decisions that depend on data: a mask is taken to hold, a branch
	// takes both sides, a loop runs once.
	Unknown int64
}

// Wavefronts returns the passes over shared memory's banks.
func (c *Counts) Wavefronts() int64 {
	return c.SharedLoads + c.SharedStores + c.SharedMatrix + c.SharedCopies
}

// L2Bytes returns the bytes that cross between the SMs and L2.
func (c *Counts) L2Bytes() int64 {
	return bench.SectorBytes * (c.Loads.Sectors + c.Copies.Sectors + c.Stores.Sectors + c.Writes.Sectors)
}

// add adds n times d.
func (c *Counts) add(d *Counts, n int64) {
	for i := range c.Mma {
		c.Mma[i] += n * d.Mma[i]
	}
	for i := range c.Wgmma {
		for j := range c.Wgmma[i] {
			c.Wgmma[i][j] += n * d.Wgmma[i][j]
		}
	}
	c.MUFU += n * d.MUFU
	c.Barriers += n * d.Barriers
	c.Loads.add(d.Loads, n)
	c.Stores.add(d.Stores, n)
	c.Copies.add(d.Copies, n)
	c.Writes.add(d.Writes, n)
	for i := range c.Read {
		c.Read[i] += n * d.Read[i]
	}
	c.SharedLoads += n * d.SharedLoads
	c.SharedStores += n * d.SharedStores
	c.SharedMatrix += n * d.SharedMatrix
	c.SharedCopies += n * d.SharedCopies
	c.SharedIdeal += n * d.SharedIdeal
	c.Unknown += n * d.Unknown
}

func (a *Access) add(b Access, n int64) {
	a.Requests += n * b.Requests
	a.Bytes += n * b.Bytes
	a.Sectors += n * b.Sectors
}

// times is n blocks' access, as a roofline has it.
func (a *Access) times(n float64) roofline.Access {
	return roofline.Access{Requests: n * float64(a.Requests), Sectors: n * float64(a.Sectors), Bytes: n * float64(a.Bytes)}
}

// request is the lanes of one warp's access: number, address and bytes of each.
type request struct {
	lanes [warpSize]int
	addr  [warpSize]int64
	size  [warpSize]int64
	n     int
}

func (r *request) lane(lane int, addr, size int64) {
	r.lanes[r.n], r.addr[r.n], r.size[r.n] = lane, addr, size
	r.n++
}

// sectors calls f with every different sector, by number.
func (r *request) sectors(f func(sector int64)) {
	var all [2 * warpSize]int64
	list := all[:0]
	sorted := true
	for i := range r.n {
		for s, last := r.addr[i]/bench.SectorBytes, (r.addr[i]+r.size[i]-1)/bench.SectorBytes; s <= last; s++ {
			if n := len(list); n > 0 {
				if list[n-1] == s {
					continue
				}
				sorted = sorted && list[n-1] < s
			}
			list = append(list, s)
		}
	}
	if !sorted {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	for _, s := range list {
		f(s)
	}
}

// Shared memory has 32 banks of 4 bytes, which it serves once in a wavefront.
const (
	banks     = 32
	bankBytes = 4
)

// wavefronts returns the passes that accesses of so many bytes a lane take: lanes go in
// groups that together may ask for 128 bytes, and within a group a bank serves one word
// in a pass, to all lanes that ask for it.
func (r *request) wavefronts(bytes int) int64 {
	group := warpSize
	if bytes > bankBytes {
		group = warpSize * bankBytes / bytes
	}
	total := int64(0)
	for i := 0; i < r.n; {
		var words [banks][]int64
		most := 0
		for g := r.lanes[i] / group; i < r.n && r.lanes[i]/group == g; i++ {
			for a := r.addr[i] / bankBytes; a <= (r.addr[i]+r.size[i]-1)/bankBytes; a++ {
				b := a & (banks - 1)
				if !slices.Contains(words[b], a) {
					words[b] = append(words[b], a)
					most = max(most, len(words[b]))
				}
			}
		}
		total += int64(most)
	}
	return total
}

// footprint is the sectors that accesses touched, in pages of 128.
type footprint struct {
	pages map[int64]*[2]uint64
	at    int64
	page  *[2]uint64
	count int64
}

func (f *footprint) touch(sector int64) {
	if p := sector >> 7; f.page == nil || p != f.at {
		if f.pages == nil {
			f.pages = map[int64]*[2]uint64{}
		}
		f.at, f.page = p, f.pages[p]
		if f.page == nil {
			f.page = new([2]uint64)
			f.pages[p] = f.page
		}
	}
	bit := uint64(1) << (sector & 63)
	if word := &f.page[sector>>6&1]; *word&bit == 0 {
		*word |= bit
		f.count++
	}
}

func popcount(mask uint32) int64 { return int64(bits.OnesCount32(mask)) }
