package vm_test

import (
	"math"
	"testing"
)

// rounded is what a computation in binary32 may come to: a value and how far
// from it rounding may lead, whatever the order of additions within a
// function below and whether or not products are fused into sums. (Running
// error analysis: Higham, Accuracy and Stability of Numerical Algorithms, 3.3.)
type rounded struct{ v, e float64 }

const (
	unit32 = 1.0 / (1 << 24) // half a unit in the last place of 1
	tiny32 = 0x1p-149        // the smallest binary32
	unit64 = 1.0 / (1 << 53) // of binary64
)

func exact(x float32) rounded { return rounded{v: float64(x)} }

// off is x after an operation that is off by some units in the last place.
func (x rounded) off(units float64) rounded {
	return rounded{x.v, x.e + units*2*unit32*(math.Abs(x.v)+x.e) + tiny32}
}

func (x rounded) neg() rounded { return rounded{-x.v, x.e} }

func (x rounded) add(y rounded) rounded { return rounded{x.v + y.v, x.e + y.e}.off(0.5) }

func (x rounded) sub(y rounded) rounded { return x.add(y.neg()) }

func (x rounded) mul(y rounded) rounded {
	return rounded{x.v * y.v, math.Abs(x.v)*y.e + math.Abs(y.v)*x.e + x.e*y.e}.off(0.5)
}

func (x rounded) div(y rounded) rounded {
	q := x.v / y.v
	return rounded{q, (x.e + math.Abs(q)*y.e) / (math.Abs(y.v) - y.e)}.off(0.5)
}

func (x rounded) sqrt() rounded {
	r := math.Sqrt(x.v)
	if x.v <= x.e {
		return rounded{r, math.Sqrt(2 * x.e)}.off(0.5)
	}
	return rounded{r, x.e / math.Sqrt(x.v-x.e)}.off(0.5)
}

// sumOf adds values in any order at all.
func sumOf(all ...rounded) rounded {
	var s rounded
	var magnitude float64
	for _, x := range all {
		s.v += x.v
		s.e += x.e
		magnitude += math.Abs(x.v) + x.e
	}
	s.e += float64(len(all)) * unit32 * magnitude
	return s
}

// vec is a vector of three.
type vec [3]rounded

func (a vec) add(b vec) vec { return vec{a[0].add(b[0]), a[1].add(b[1]), a[2].add(b[2])} }

func (a vec) sub(b vec) vec { return vec{a[0].sub(b[0]), a[1].sub(b[1]), a[2].sub(b[2])} }

func (a vec) times(s rounded) vec { return vec{a[0].mul(s), a[1].mul(s), a[2].mul(s)} }

func (a vec) dot(b vec) rounded { return a[0].mul(b[0]).add(a[1].mul(b[1])).add(a[2].mul(b[2])) }

func (a vec) cross(b vec) vec {
	var c vec
	for i := range c {
		j, k := (i+1)%3, (i+2)%3
		c[i] = a[j].mul(b[k]).sub(a[k].mul(b[j]))
	}
	return c
}

// unit is the vector at length 1, or zero for zero.
func (a vec) unit() vec {
	n := a.dot(a).sqrt()
	if n.v == 0 {
		return vec{}
	}
	return a.times(exact(1).div(n))
}

// requireRounded compares what a kernel computed with what it may come to.
func requireRounded(t *testing.T, name string, got []float32, want func(i int) rounded) {
	t.Helper()
	for i, g := range got {
		w := want(i)
		if d := math.Abs(float64(g) - w.v); !(d <= w.e) {
			t.Fatalf("%s[%d] is %g: want %g within %g", name, i, g, w.v, w.e)
		}
	}
}
