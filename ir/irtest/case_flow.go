package irtest

import "github.com/kgen-dev/kgen/ir"

// inner draws the operations of a region and then what it yields; what the region
// defines goes out of scope.
func (m *maker) inner(params []tile, yield func() []*ir.Value) []*ir.Value {
	mark := len(m.pool)
	m.depth++
	m.pool = append(m.pool, params...)
	m.ops(m.IntN(4))
	out := yield()
	m.depth--
	m.pool = m.pool[:mark]
	return out
}

// loop draws a loop: one that accumulates a dot, or one that carries anything.
func (m *maker) loop() {
	lo, step := m.IntN(2), 1+m.IntN(3)
	hi := m.b.Int(lo + step*m.IntN(4))
	if m.chance(3) {
		hi = m.b.Mul(m.n, m.b.Int(step))
	}
	o := ir.Loop{Stages: m.IntN(4)}
	if m.chance(2) {
		m.accumulate(o)
		return
	}
	var init []*ir.Value
	for range 1 + m.IntN(2) {
		init = append(init, m.get(m.elem(numbers), m.shape(), anything).Value)
	}
	out := m.b.For(m.b.Int(lo), hi, m.b.Int(step), init, o, func(k *ir.Value, carried []*ir.Value) []*ir.Value {
		m.loops = append(m.loops, k)
		defer func() { m.loops = m.loops[:len(m.loops)-1] }()
		params := []tile{{k, anything}}
		for _, c := range carried {
			params = append(params, tile{c, anything})
		}
		return m.inner(params, func() []*ir.Value {
			next := make([]*ir.Value, len(init))
			for i, v := range init {
				next[i] = m.get(v.Type.Elem, v.Type.Shape, anything).Value
			}
			return next
		})
	})
	for _, v := range out {
		m.keep(v, anything)
	}
}

// accumulate sums dots over a few steps of K.
func (m *maker) accumulate(o ir.Loop) {
	t, depth := m.operands(), pick(m, []int{8, 16, 32, 32})
	acc := m.b.Zero(ir.TileOf(t[2], m.rows, m.cols))
	end := m.b.Int(depth * m.IntN(4))
	if m.chance(3) {
		end = m.b.Sub(end, m.b.Int(m.IntN(depth)))
	}
	out := m.b.For(m.b.Int(0), end, m.b.Int(depth), []*ir.Value{acc}, o, func(k *ir.Value, carried []*ir.Value) []*ir.Value {
		m.loops = append(m.loops, k)
		defer func() { m.loops = m.loops[:len(m.loops)-1] }()
		return m.inner([]tile{{k, anything}}, func() []*ir.Value {
			if t[2] == ir.F16 || m.chance(2) {
				return []*ir.Value{m.multiply(t, depth, carried[0], k)}
			}
			part := m.multiply(t, depth, m.b.Zero(acc.Type), k)
			return []*ir.Value{m.b.Add(carried[0], m.masked(part))}
		})
	})
	m.keep(out[0], counts)
}

func (m *maker) branch() {
	cond := m.get(ir.I1, nil, anything).Value
	if m.chance(2) {
		cond = m.b.Cmp(pick(m, []ir.Pred{ir.EQ, ir.LT, ir.GE}), m.at, m.b.Int(m.IntN(3)))
	}
	e, shape := m.elem(all), m.shape()
	side := func() []*ir.Value {
		return m.inner(nil, func() []*ir.Value { return []*ir.Value{m.get(e, shape, anything).Value} })
	}
	for _, v := range m.b.If(cond, side, side) {
		m.keep(v, anything)
	}
}
