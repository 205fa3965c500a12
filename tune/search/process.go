package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// process is a Gaussian process over points. Its covariance is a mixture of a product of
// one factor a dimension, which can follow any interaction, and of the factors' mean,
// which learns what each dimension does by itself from few points. Both only look up a
// table for each dimension, since dimensions have few values.
//
// Rows are appended to its Cholesky factor as points come, and a candidate's solution of
// that factor likewise, so that a point costs every candidate one scalar product.
type process struct {
	axes  []axis // the dimensions with more than one value
	theta theta
	table []float64 // by axis and difference of indices: the factor
	mean  float64   // of each factor of an axis in the mixture

	points []place
	rows   [][]float64 // lower triangle of the covariance's Cholesky factor
	ones   []float64   // the factor's solution for a vector of ones
}

// axis is a dimension with more than one value.
type axis struct {
	dim, len int
	ordered  bool // its values are numbers
	offset   int  // in process.table, of 2*len-1 factors, from the least difference on
}

// place is a point in two forms: by axis where the factor of its index and index 0 stands
// in the table, and the index, by which that of another point stands before it.
type place struct{ rows, index []int32 }

// theta are the parameters of a covariance.
type theta struct {
	length []float64 // by axis: logarithm of the length over which values are alike, the whole axis being 1
	noise  float64   // logarithm of the variance of the noise over that of the signal
	sum    float64   // weight of the sum, 0 to 1
}

func (t theta) clone() theta {
	t.length = slices.Clone(t.length)
	return t
}

func newProcess(dims []Dim) *process {
	p, n := &process{}, 0
	for i, d := range dims {
		if d.Len > 1 {
			p.axes = append(p.axes, axis{dim: i, len: d.Len, ordered: d.Values != nil, offset: n})
			n += 2*d.Len - 1
		}
	}
	p.table = make([]float64, n)
	return p
}

func (p *process) place(x Point) place {
	n := len(p.axes)
	both := make([]int32, 2*n)
	at := place{both[:n:n], both[n:]}
	for k, a := range p.axes {
		at.rows[k] = int32(a.offset + a.len - 1 + x[a.dim])
		at.index[k] = int32(x[a.dim])
	}
	return at
}

// apart is the distance of two indices of an axis that differ by so much: 0 to 1, and 1 for
// any two names.
func (a axis) apart(difference int) float64 {
	switch {
	case difference == 0:
		return 0
	case !a.ordered:
		return 1
	}
	return math.Abs(float64(difference)) / float64(a.len-1)
}

// set empties the process and gives it parameters.
func (p *process) set(t theta) {
	p.theta = t
	p.points, p.rows, p.ones = p.points[:0], p.rows[:0], p.ones[:0]
	for k, a := range p.axes {
		scale := math.Exp(-t.length[k])
		middle := a.offset + a.len - 1
		for d := range a.len {
			f := factor(a.apart(d) * scale)
			p.table[middle-d], p.table[middle+d] = f, f
		}
	}
	p.mean = t.sum / float64(max(1, len(p.axes)))
}

// factor is a mixture of the Matérn covariances of orders 1/2 and 3/2. The rough one has
// most of the weight: times of kernels jump from one value to the next, and a smooth
// surface would be too sure of what lies beside the best.
func factor(r float64) float64 {
	const rough = 0.7
	smooth := math.Sqrt(3) * r
	return rough*math.Exp(-r) + (1-rough)*(1+smooth)*math.Exp(-smooth)
}

// covariance of two points; 1 for equal ones.
func (p *process) covariance(a, b place) float64 {
	product, sum := 1.0, 0.0
	index := b.index[:len(a.rows)]
	table := p.table
	for k, row := range a.rows {
		f := table[row-index[k]]
		product *= f
		sum += f
	}
	return product*(1-p.theta.sum) + p.mean*sum
}

// add appends a point.
func (p *process) add(x place) {
	n := len(p.points)
	row := make([]float64, 0, n+1)
	for i, y := range p.points {
		row = append(row, (p.covariance(y, x)-floats.Dot(row, p.rows[i][:i]))/p.rows[i][i])
	}
	left := 1 + math.Exp(p.theta.noise) - floats.Dot(row, row)
	row = append(row, math.Sqrt(max(left, 1e-10)))
	p.points = append(p.points, x)
	p.rows = append(p.rows, row)
	p.ones = append(p.ones, (1-floats.Dot(row[:n], p.ones))/row[n])
}

// trend returns the mean and the variance of the signal that make y likeliest, and the
// factor's solution for y less that mean.
func (p *process) trend(y []float64) (mean, variance float64, z []float64) {
	z = make([]float64, 0, len(p.rows))
	for i, row := range p.rows {
		z = append(z, (y[i]-floats.Dot(row[:i], z))/row[i])
	}
	mean = floats.Dot(p.ones, z) / floats.Dot(p.ones, p.ones)
	floats.AddScaled(z, -mean, p.ones)
	return mean, max(floats.Dot(z, z)/float64(len(z)), 1e-12), z
}

// likelihood is the logarithm of the probability of y, mean and variance being the
// likeliest, up to a constant.
func (p *process) likelihood(y []float64) float64 {
	_, variance, _ := p.trend(y)
	l := -0.5 * float64(len(y)) * math.Log(variance)
	for i, row := range p.rows {
		l -= math.Log(row[i])
	}
	return l
}
