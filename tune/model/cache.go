package model

const (
	// mostBlocks bounds how many blocks of a launch are looked at one by one, in as many
	// stretches of its grid; the rest are taken to be like these.
	mostBlocks = 1 << 15
	stretches  = 8
	// mostSources bounds what is told apart of what they read; beyond, all is.
	mostSources = 1 << 21
)

// kept is what the L2 may still hold of a source.
type kept struct {
	bytes float64
	wave  int32 // in which it was last read, from 1; 0: never
	mark  int32 // the wave whose reads of it are being added up
	now   float64
}

// hbmBytes is what a launch moves to and from device memory when blocks run a wave of
// so many at a time, in the order of their numbers, with an L2 that keeps capacity
// bytes. Within a wave what several blocks read comes once: they go through it
// together. From one wave to a later one it is still there if what all waves between
// touched fits the L2. What a block reads again itself is there if what the wave
// touches fits.
func (l *launch) hbmBytes(wave int64, capacity float64) float64 {
	var state [maxPointers][]kept
	for i := range l.reads {
		if n := l.sources(i); l.reads[i].all[1] > 0 && n <= mostSources {
			state[i] = make([]kept, n)
		}
	}
	type place struct{ pointer, source int }
	var order []place
	touched := []float64{0, 0} // by all waves before each, from 1
	total, written, again, footprint := 0.0, 0.0, 0.0, 0.0
	number := int32(1)
	end := func() {
		for _, at := range order {
			k := &state[at.pointer][at.source]
			footprint += k.now
			have := 0.0
			if k.wave > 0 && touched[number]-touched[k.wave] <= capacity {
				have = k.bytes
			}
			total += max(0, k.now-have)
			k.bytes, k.wave = k.now, number
		}
		footprint += written
		total += written
		if footprint > capacity {
			total += again
		}
		touched = append(touched, touched[number]+footprint)
		order, written, again, footprint = order[:0], 0, 0, 0
		number++
	}
	blocks := l.visit(func(i int, class int32, p []int) {
		if i > 0 && int64(i)%wave == 0 {
			end()
		}
		share := l.classes[class].share
		written += l.written
		for pointer := range l.reads {
			all, once := l.reads[pointer].of(share, l.least)
			if all == 0 {
				continue
			}
			again += all - once
			if state[pointer] == nil {
				total += once
				footprint += once
				continue
			}
			s := int(l.source(pointer, p))
			k := &state[pointer][s]
			if k.mark != number {
				k.mark, k.now = number, 0
				order = append(order, place{pointer, s})
			}
			k.now = max(k.now, once)
		}
	})
	end()
	return total * float64(l.Grid) / float64(blocks)
}
