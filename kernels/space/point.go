package space

import (
	"math/rand/v2"
	"slices"
)

// Dim is one parameter as a search sees it, which knows values by their indices.
type Dim struct {
	Name string
	Len  int // how many values it has; at least 1
	// Values are the values as numbers, in the order of the indices; nil where they are
	// names, which have no order.
	Values []float64
}

// Dims describes the parameters.
func (b *Bound) Dims() []Dim {
	dims := make([]Dim, len(b.names))
	for i, p := range b.space.Params {
		dims[i] = Dim{Name: p.Name, Len: len(p.Values)}
		if p.Words == nil {
			for _, v := range p.Values {
				dims[i].Values = append(dims[i].Values, float64(v))
			}
		}
	}
	return dims
}

// At is the configuration that has the values with these indices, one for each parameter.
func (b *Bound) At(index []int) Config {
	values := make([]int, len(index))
	for p, i := range index {
		values[p] = b.space.Params[p].Values[i]
	}
	return b.space.config(values)
}

// Index is where a configuration's values stand among those that a search tries; false
// if one of them does not.
func (b *Bound) Index(c Config) (index []int, ok bool) {
	for _, p := range b.space.Params {
		v, has := c.Get(p.Name)
		i := slices.Index(p.Values, v)
		if !has || i < 0 {
			return nil, false
		}
		index = append(index, i)
	}
	return index, true
}

// frameOf is what an expression is evaluated in at a point.
func (b *Bound) frameOf(index []int) frame {
	f := frame{values: make([]int64, len(index))}
	for p, i := range index {
		f.values[p] = b.values[p][i]
	}
	return f
}

// Valid tells whether the point that has the values with these indices, one for each
// parameter, meets the constraints.
func (b *Bound) Valid(index []int) bool {
	w := walk{Bound: b, frame: b.frameOf(index)}
	for i := range b.rules {
		if !w.holds(i) {
			return false
		}
	}
	return true
}

// Next returns the indices of the valid point after the one given, in the order of All;
// the first one after nil. ok is false after the last.
func (b *Bound) Next(index []int) (next []int, ok bool) {
	w := b.narrowing()
	w.start = index
	w.visit = func() bool {
		if slices.Equal(w.pick, index) {
			return true
		}
		next, ok = slices.Clone(w.pick), true
		return false
	}
	w.run()
	return next, ok
}

// How hard Sample tries: draws from the product, then prefixes on a walk with choices at
// random.
const (
	mostDraws = 64
	mostSteps = 200_000
)

// Sample draws a valid point without enumerating the space: evenly from all of them
// where they are not rare, else one that a random walk finds. ok is false if it found
// none.
func (b *Bound) Sample(r *rand.Rand) (index []int, ok bool) {
	index = make([]int, len(b.names))
	for range mostDraws {
		for p, values := range b.values {
			index[p] = r.IntN(len(values))
		}
		if b.Valid(index) {
			return index, true
		}
	}
	w := b.narrowing()
	w.shuffle, w.steps = r, mostSteps
	w.visit = func() bool {
		index, ok = slices.Clone(w.pick), true
		return false
	}
	w.run()
	return index, ok
}
