package model

import (
	"container/heap"
	"slices"
)

// schedule returns the time in which SMs that hold up to most blocks each get through
// blocks of the given classes, handed out in order as places fall free. shared tells
// how long a block of a class takes when n blocks share its SM: the fewer, the faster.
func schedule(sms, most int, blocks []int32, shared func(class int32, n int) float64) float64 {
	if slices.Min(blocks) == slices.Max(blocks) {
		return alike(sms, most, len(blocks), func(n int) float64 { return shared(blocks[0], n) })
	}
	s := scheduler{most: most, blocks: blocks, shared: shared}
	q := make(queue, min(sms, len(blocks)))
	for i := range q {
		q[i] = &sm{}
	}
	s.give(q)
	heap.Init(&q)
	now := 0.0
	for len(q) > 0 {
		now = q[0].next
		var free []*sm // those where a block ends now
		for len(q) > 0 && q[0].next <= now*(1+rounding) {
			m := heap.Pop(&q).(*sm)
			s.advance(m)
			free = append(free, m)
		}
		s.give(free)
		for _, m := range free {
			if len(m.running) > 0 {
				heap.Push(&q, m)
			}
		}
	}
	return now
}

// walked is the time of the persistent block with the most to do: each goes through the tiles
// that the raster gives it, whose classes are given in that order.
func (l *launch) walked(tiles []int32, us func(class int32) float64) float64 {
	busy := make([]float64, l.blocks)
	for i, class := range tiles {
		busy[l.owner(int64(i))] += us(class)
	}
	return slices.Max(busy)
}

// rounding is by how much times may differ that are meant to be equal.
const rounding = 1e-9

// alike is schedule for blocks of one class: whole waves, and a rest spread evenly.
func alike(sms, most, blocks int, shared func(n int) float64) float64 {
	waves, rest := blocks/(sms*most), blocks%(sms*most)
	t := float64(waves) * shared(most)
	if rest > 0 {
		t += shared((rest + sms - 1) / sms)
	}
	return t
}

type scheduler struct {
	most   int
	blocks []int32
	shared func(class int32, n int) float64
}

// sm is a multiprocessor and the blocks that run there.
type sm struct {
	running []block
	now     float64 // until when its blocks' progress is known
	next    float64 // when the first of them ends
}

type block struct {
	class int32
	left  float64 // of its work, 1 at the start
}

// give starts the next blocks where there are places, one each in turn.
func (s *scheduler) give(to []*sm) {
	for range s.most {
		for _, m := range to {
			if len(s.blocks) > 0 && len(m.running) < s.most {
				m.running = append(m.running, block{s.blocks[0], 1})
				s.blocks = s.blocks[1:]
			}
		}
	}
	for _, m := range to {
		first := 0.0
		for i, b := range m.running {
			if t := b.left * s.shared(b.class, len(m.running)); i == 0 || t < first {
				first = t
			}
		}
		m.next = m.now + first
	}
}

// advance runs a multiprocessor's blocks to its next end and takes out what ended.
func (s *scheduler) advance(m *sm) {
	passed := m.next - m.now
	n := len(m.running)
	kept := m.running[:0]
	for _, b := range m.running {
		b.left -= passed / s.shared(b.class, n)
		if b.left > rounding {
			kept = append(kept, b)
		}
	}
	m.running, m.now = kept, m.next
}

// queue holds multiprocessors by their next end.
type queue []*sm

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next < q[j].next }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*sm)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
