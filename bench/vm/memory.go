package vm

import (
	"fmt"
	"math/bits"
	"sort"
)

// The address space. Global memory begins where no 32-bit value or small
// integer can point to by accident; shared and local memory are windows of the
// generic space.
const (
	pageBits     = 12
	pageSize     = 1 << pageBits // allocations start on pages, with at least one unmapped between
	globalBase   = uint64(0x10_0000_0000)
	sharedWindow = uint64(0x7f10_0000_0000)
	localWindow  = uint64(0x7f20_0000_0000)
	windowSize   = uint64(1) << 32
)

// memory is a device's global memory.
type memory struct {
	pages  []*allocation // by page from globalBase
	allocs []*allocation // by address
	next   uint64
	used   int64
	most   int64
}

// allocation is a run of global memory.
type allocation struct {
	addr  uint64
	size  int64
	data  []byte
	undef []uint64 // a bit for each byte that was never written; nil where all were
	left  int64    // such bytes

	read, written touched // by the launch that runs
	before        before
	shadows       []shadow // of its lines, to the launch that runs
	originals     []uint32 // and how they were, numbers from 1; 0 is as it is now

	name   string // of a module's variable
	module bool   // belongs to a module
	// parameters says that it is a launch's parameters.
	parameters bool
	constant   bool
}

func (m *memory) init() {
	m.pages, m.allocs, m.used = nil, nil, 0
	m.next = globalBase
}

// alloc reserves size bytes. Addresses are never used again.
func (m *memory) alloc(size, align int64) (*allocation, error) {
	if size > m.most-m.used {
		return nil, fmt.Errorf("%d bytes of global memory: want at most %d, which are left of the %d that the virtual machine has here", size, m.most-m.used, m.most)
	}
	a := uint64(max(align, pageSize))
	addr := (m.next + a - 1) &^ (a - 1)
	n := (uint64(size) + pageSize - 1) >> pageBits
	first := (addr - globalBase) >> pageBits
	if first+n >= 1<<26 {
		return nil, fmt.Errorf("%d bytes of global memory: the virtual machine's address space is used up", size)
	}
	al := &allocation{addr: addr, size: size, data: make([]byte, size)}
	for uint64(len(m.pages)) < first+max(n, 1) {
		m.pages = append(m.pages, nil)
	}
	for i := range max(n, 1) {
		m.pages[first+i] = al
	}
	m.next = addr + max(n, 1)<<pageBits + pageSize
	m.used += size
	m.allocs = append(m.allocs, al)
	return al, nil
}

func (m *memory) free(a *allocation) {
	first := (a.addr - globalBase) >> pageBits
	for i := first; i < uint64(len(m.pages)) && m.pages[i] == a; i++ {
		m.pages[i] = nil
	}
	for i, x := range m.allocs {
		if x == a {
			m.allocs = append(m.allocs[:i], m.allocs[i+1:]...)
			break
		}
	}
	m.used -= a.size
}

// find is the allocation whose pages an address is in, or nil.
func (m *memory) find(addr uint64) *allocation {
	page := (addr - globalBase) >> pageBits
	if page >= uint64(len(m.pages)) {
		return nil
	}
	return m.pages[page]
}

// takeTouched is how many bytes the launch read and wrote, each once. An early launch may
// be over no sooner than those before it, so what they touched is kept as well.
func (m *memory) takeTouched(early bool) (read, written int64) {
	for _, a := range m.allocs {
		r, nr := a.read.take()
		w, nw := a.written.take()
		if early {
			r, w = merged(a.before.read, r), merged(a.before.written, w)
		}
		a.before = before{r, w}
		read += nr
		written += nw
	}
	return read, written
}

// forgetLaunch drops what is kept for a launch's blocks.
func (m *memory) forgetLaunch() {
	for _, a := range m.allocs {
		a.shadows, a.originals = nil, nil
	}
}

// nearBytes is how far from an allocation an address may be that still tells of it.
const nearBytes = 1 << 30

// describe says where an address lies, for a report: in which allocation, or else
// what it is near to.
func (m *memory) describe(addr uint64) string {
	switch {
	case addr-sharedWindow < windowSize:
		return fmt.Sprintf("it is the generic address of byte %#x of shared memory", addr-sharedWindow)
	case addr-localWindow < windowSize:
		return fmt.Sprintf("it is the generic address of byte %#x of local memory", addr-localWindow)
	}
	i := sort.Search(len(m.allocs), func(i int) bool { return m.allocs[i].addr > addr })
	if i > 0 && addr-m.allocs[i-1].addr < uint64(m.allocs[i-1].size) {
		return fmt.Sprintf("byte %d of %s", addr-m.allocs[i-1].addr, m.allocs[i-1])
	}
	// What is near is what the program was given, and its parameters only right beside
	// them: who goes astray further does so by another pointer.
	text, gap := "", uint64(nearBytes)
	for _, a := range m.allocs[max(i-2, 0):min(i+2, len(m.allocs))] {
		end := a.addr + uint64(a.size)
		n := addr - end
		if addr < a.addr {
			n = a.addr - addr
		}
		if n >= gap || a.parameters && n > pageSize {
			continue
		}
		if gap = n; addr < a.addr {
			text = fmt.Sprintf("%d bytes before %s", n, a)
		} else {
			text = fmt.Sprintf("%d bytes after the end of %s", n, a)
		}
	}
	switch {
	case text != "":
		return text
	case addr < pageSize:
		return "a null pointer, or a small number in place of one"
	case addr < nearBytes:
		return "no pointer to global memory: a number of 32 bits, such as an address of shared memory that was not converted"
	}
	return fmt.Sprintf("nothing is allocated within %d MiB of it", nearBytes>>20)
}

func (a *allocation) String() string {
	if a.name != "" {
		return fmt.Sprintf("%s (%d bytes at %#x)", a.name, a.size, a.addr)
	}
	return fmt.Sprintf("the buffer of %d bytes at %#x", a.size, a.addr)
}

// forget marks all bytes as never written.
func (a *allocation) forget() {
	if a.size == 0 {
		return
	}
	a.undef = make([]uint64, (a.size+63)/64)
	for i := range a.undef {
		a.undef[i] = ^uint64(0)
	}
	if r := a.size & 63; r != 0 {
		a.undef[len(a.undef)-1] = 1<<r - 1
	}
	a.left = a.size
}

// define marks bytes as written.
func (a *allocation) define(offset, n int64) {
	if a.undef == nil {
		return
	}
	for n > 0 {
		word, bit := offset>>6, offset&63
		k := min(64-bit, n)
		mask := (^uint64(0) >> (64 - k)) << bit
		a.left -= int64(bits.OnesCount64(a.undef[word] & mask))
		a.undef[word] &^= mask
		offset += k
		n -= k
	}
	if a.left == 0 {
		a.undef = nil
	}
}
