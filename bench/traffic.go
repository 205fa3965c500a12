package bench

import "encoding/json"

// AccessCount counts accesses of one kind.
type AccessCount struct {
	Requests int64 `json:"requests"` // warp instructions, or bulk copies
	Bytes    int64 `json:"bytes"`    // that the active threads asked for
	Sectors  int64 `json:"sectors"`  // distinct aligned 32-byte sectors of each request, summed
}

// SectorBytes is what the caches and memory move at least.
const SectorBytes = 32

// PerRequest is the mean of sectors of a request.
func (a *AccessCount) PerRequest() float64 {
	if a.Requests == 0 {
		return 0
	}
	return float64(a.Sectors) / float64(a.Requests)
}

// MarshalJSON adds the sectors of a request.
func (a AccessCount) MarshalJSON() ([]byte, error) {
	type counts AccessCount
	return json.Marshal(struct {
		counts
		PerRequest float64 `json:"sectors_per_request"`
	}{counts(a), a.PerRequest()})
}

// GlobalTraffic is global memory's traffic at the level of requests, before
// any cache.
type GlobalTraffic struct {
	Loads   AccessCount `json:"loads"`   // ld, and ldu
	Stores  AccessCount `json:"stores"`  // st
	Copies  AccessCount `json:"copies"`  // cp.async, bulk and tensor copies from global memory
	Writes  AccessCount `json:"writes"`  // bulk and tensor copies and reductions to global memory
	Atomics AccessCount `json:"atomics"` // atom and red

	// Distinct bytes of global memory, each once, whoever touches it and how
	// often. Atomics and reductions do both.
	UniqueRead    int64 `json:"unique_read_bytes"`
	UniqueWritten int64 `json:"unique_written_bytes"`
}

// L2Traffic is what the requests of a launch are to a model of the GPU's L2:
// set-associative, of lines of four sectors, the least recently used replaced,
// empty at the start and written back at the end. All requests reach it, as if
// there were no L1. Blocks that are resident together take turns, a line each.
type L2Traffic struct {
	Reads     int64 `json:"read_sectors"` // atomics read too
	ReadHits  int64 `json:"read_hits"`    // of them found there
	Writes    int64 `json:"write_sectors"`
	WriteHits int64 `json:"write_hits"`

	// Sectors between L2 and memory: reads that missed, and what was written
	// and had to make room or was left at the end.
	MemoryReads  int64 `json:"memory_read_sectors"`
	MemoryWrites int64 `json:"memory_write_sectors"`
}

// Bytes is what passes between the multiprocessors and L2.
func (t *L2Traffic) Bytes() int64 { return SectorBytes * (t.Reads + t.Writes) }

// MemoryBytes is what passes between L2 and memory.
func (t *L2Traffic) MemoryBytes() int64 { return SectorBytes * (t.MemoryReads + t.MemoryWrites) }

// HitRate is the share of sectors that were found in L2.
func (t *L2Traffic) HitRate() float64 { return share(t.ReadHits+t.WriteHits, t.Reads+t.Writes) }

// MarshalJSON adds bytes and the hit rate.
func (t L2Traffic) MarshalJSON() ([]byte, error) {
	type counts L2Traffic
	return json.Marshal(struct {
		counts
		Bytes       int64   `json:"bytes"`
		MemoryBytes int64   `json:"memory_bytes"`
		HitRate     float64 `json:"hit_rate"`
	}{counts(t), t.Bytes(), t.MemoryBytes(), t.HitRate()})
}

// BulkTraffic counts bytes of bulk and tensor copies. What of a tensor's box
// lies outside counts too: it is filled with zeros and waited for.
type BulkTraffic struct {
	Loads   int64 `json:"load_bytes"`    // into shared memory, from global or a mate's; a multicast's for each block
	Stores  int64 `json:"store_bytes"`   // to global memory
	Reduces int64 `json:"reduced_bytes"` // cp.reduce, into either
}

// SharedCount counts accesses to shared memory. A wavefront is one pass over
// the 32 banks of 4 bytes; Ideal is what the same bytes need without conflicts.
type SharedCount struct {
	Requests   int64 `json:"requests"`
	Bytes      int64 `json:"bytes"`
	Wavefronts int64 `json:"wavefronts"`
	Ideal      int64 `json:"ideal_wavefronts"`
}

// Conflicts are the wavefronts that bank conflicts cost.
func (a *SharedCount) Conflicts() int64 { return a.Wavefronts - a.Ideal }

// MarshalJSON adds the conflicts.
func (a SharedCount) MarshalJSON() ([]byte, error) {
	type counts SharedCount
	return json.Marshal(struct {
		counts
		Conflicts int64 `json:"conflicts"`
	}{counts(a), a.Conflicts()})
}

// SharedTraffic is shared memory's traffic.
type SharedTraffic struct {
	Loads    SharedCount `json:"loads"`    // ld
	Stores   SharedCount `json:"stores"`   // st
	Matrix   SharedCount `json:"matrix"`   // ldmatrix, stmatrix
	Copies   SharedCount `json:"copies"`   // cp.async into shared memory
	Atomics  SharedCount `json:"atomics"`  // atom, red
	Operands SharedCount `json:"operands"` // read by wgmma and tcgen05, bulk copies
}

// Total is the traffic of all kinds.
func (s *SharedTraffic) Total() SharedCount {
	var t SharedCount
	for _, c := range []*SharedCount{&s.Loads, &s.Stores, &s.Matrix, &s.Copies, &s.Atomics, &s.Operands} {
		t.Add(c)
	}
	return t
}

// Add adds other accesses.
func (a *AccessCount) Add(b *AccessCount) {
	a.Requests += b.Requests
	a.Bytes += b.Bytes
	a.Sectors += b.Sectors
}

func (g *GlobalTraffic) add(h *GlobalTraffic) {
	g.Loads.Add(&h.Loads)
	g.Stores.Add(&h.Stores)
	g.Copies.Add(&h.Copies)
	g.Writes.Add(&h.Writes)
	g.Atomics.Add(&h.Atomics)
	g.UniqueRead += h.UniqueRead
	g.UniqueWritten += h.UniqueWritten
}

func (t *L2Traffic) add(o *L2Traffic) {
	t.Reads += o.Reads
	t.ReadHits += o.ReadHits
	t.Writes += o.Writes
	t.WriteHits += o.WriteHits
	t.MemoryReads += o.MemoryReads
	t.MemoryWrites += o.MemoryWrites
}

func (t *BulkTraffic) add(o *BulkTraffic) {
	t.Loads += o.Loads
	t.Stores += o.Stores
	t.Reduces += o.Reduces
}

// Add adds other accesses.
func (a *SharedCount) Add(b *SharedCount) {
	a.Requests += b.Requests
	a.Bytes += b.Bytes
	a.Wavefronts += b.Wavefronts
	a.Ideal += b.Ideal
}

func (s *SharedTraffic) add(t *SharedTraffic) {
	s.Loads.Add(&t.Loads)
	s.Stores.Add(&t.Stores)
	s.Matrix.Add(&t.Matrix)
	s.Copies.Add(&t.Copies)
	s.Atomics.Add(&t.Atomics)
	s.Operands.Add(&t.Operands)
}
