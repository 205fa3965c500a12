package vm

// rng is SplitMix64: a small generator whose streams differ by seed.
type rng uint64

func newRNG(seed, stream uint64) rng {
	r := rng(seed*0x9e3779b97f4a7c15 + stream)
	r.next()
	return r
}

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number from 0 to n-1.
func (r *rng) below(n int) int { return int(r.next() >> 33 % uint64(n)) }
