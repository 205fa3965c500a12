package vm

import "unsafe"

// arena keeps values of one type by number, in memory that grows by chunks, so that
// what is kept is what is used, and the collector finds no garbage.
type arena[T any] struct {
	chunks [][]T
	free   []uint32
}

const arenaChunk = 1 << 8 // values

func (a *arena[T]) at(n uint32) *T { return &a.chunks[n/arenaChunk][n%arenaChunk] }

// take gives the number of a value that nobody uses.
func (a *arena[T]) take() uint32 {
	if len(a.free) == 0 {
		n := uint32(len(a.chunks)) * arenaChunk
		a.chunks = append(a.chunks, make([]T, arenaChunk))
		for i := range uint32(arenaChunk) {
			a.free = append(a.free, n+arenaChunk-1-i)
		}
	}
	n := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	return n
}

// give takes a number back.
func (a *arena[T]) give(n uint32) { a.free = append(a.free, n) }

// size is how many bytes are kept.
func (a *arena[T]) size() int64 {
	var one T
	return int64(len(a.chunks))*arenaChunk*int64(unsafe.Sizeof(one)) + int64(cap(a.free))*int64(unsafe.Sizeof(uint32(0)))
}
