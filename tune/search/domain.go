package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Listed is a domain of points given one by one.
type Listed struct {
	dims   []Dim
	keys   keys
	points []Point
	index  map[string]int
}

// NewListed makes a domain of points, which it keeps. It refuses an empty list and
// points that are out of range or repeat.
func NewListed(dims []Dim, points []Point) (*Listed, error) {
	l := &Listed{dims: dims, keys: newKeys(dims), points: points, index: make(map[string]int, len(points))}
	if len(points) == 0 {
		return nil, fmt.Errorf("space of %d parameters: no point is valid", len(dims))
	}
	for n, p := range points {
		if len(p) != len(dims) {
			return nil, fmt.Errorf("point %d has %d indices: want %d", n, len(p), len(dims))
		}
		for i, d := range dims {
			if p[i] < 0 || p[i] >= d.Len {
				return nil, fmt.Errorf("point %d: index %d of %s: want 0 to %d", n, p[i], d.Name, d.Len-1)
			}
		}
		key := l.keys.of(p)
		if _, again := l.index[key]; again {
			return nil, fmt.Errorf("point %d repeats an earlier one", n)
		}
		l.index[key] = n
	}
	return l, nil
}

// Dims implements Domain.
func (l *Listed) Dims() []Dim { return l.dims }

// Index returns the place of a point in the list.
func (l *Listed) Index(p Point) (int, bool) {
	i, ok := l.index[l.keys.of(p)]
	return i, ok
}

// Valid implements Domain.
func (l *Listed) Valid(p Point) bool { _, ok := l.Index(p); return ok }

// Sample implements Domain: all points are equally likely.
func (l *Listed) Sample(r *rand.Rand) (Point, bool) {
	return slices.Clone(l.points[r.IntN(len(l.points))]), true
}

// Next implements Domain, in the order of the list.
func (l *Listed) Next(p Point) (Point, bool) {
	i := 0
	if p != nil {
		at, ok := l.Index(p)
		if !ok {
			return nil, false
		}
		i = at + 1
	}
	if i == len(l.points) {
		return nil, false
	}
	return slices.Clone(l.points[i]), true
}

// mostNeighbours bounds how many values of a dimension a point's neighbours have: of more
// the nearest.
const mostNeighbours = 256

// neighbours calls visit with every valid point that differs from p in one dimension,
// until it returns false. With adjacent, ordered dimensions only move to the next value
// on either side. The point is visit's only during the call.
func neighbours(d Domain, p Point, adjacent bool, visit func(Point) bool) {
	q := slices.Clone(p)
	for i, dim := range d.Dims() {
		from, to := 0, dim.Len
		if dim.Len > mostNeighbours {
			from, to = max(0, p[i]-mostNeighbours/2), min(dim.Len, p[i]+mostNeighbours/2)
		}
		for v := from; v < to; v++ {
			if v == p[i] || adjacent && dim.Values != nil && v != p[i]-1 && v != p[i]+1 {
				continue
			}
			q[i] = v
			if d.Valid(q) && !visit(q) {
				return
			}
		}
		q[i] = p[i]
	}
}
