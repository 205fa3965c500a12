package vm_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// portion is a selector: bits of a word from a place on.
type portion struct{ at, width int }

var fields = map[string]portion{"": {0, 32}, "b0": {0, 8}, "b1": {8, 8}, "b2": {16, 8}, "b3": {24, 8}, "h0": {0, 16}, "h1": {16, 16}}

func (f portion) get(v uint64, signedType bool) *big.Int {
	return number(v>>f.at&(1<<f.width-1), f.width, signedType)
}

func (f portion) put(word uint64, x *big.Int) uint64 {
	mask := uint64(1<<f.width-1) << f.at
	return word&^mask | wrapped(x, f.width)<<f.at
}

func isSigned(t string) bool { return t[0] == 's' }

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// videoReference is an operation on exact numbers.
func videoReference(op string) func(a, b *big.Int) *big.Int {
	switch op {
	case "vadd":
		return func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	case "vsub":
		return func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
	case "vabsdiff":
		return func(a, b *big.Int) *big.Int { return new(big.Int).Abs(new(big.Int).Sub(a, b)) }
	case "vmin":
		return smaller
	case "vmax":
		return larger
	case "vavrg": // halves away from zero, but those below it
		return func(a, b *big.Int) *big.Int {
			s := new(big.Int).Add(a, b)
			if s.Sign() >= 0 {
				s.Add(s, big.NewInt(1))
			}
			return s.Rsh(s, 1)
		}
	}
	return nil
}

// withSelectors writes an instruction's operands with selectors.
func (ins instruction) withSelectors(d string, sel ...string) instruction {
	ins.selectors = append([]string{d}, sel...)
	return ins
}

func videoInstructions() []instruction {
	var list []instruction
	types := []string{"u32", "s32"}
	sels := []string{"", "b0", "b3", "h1", "b2", "h0", "b1"}
	n := 0
	for _, op := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"} {
		f := videoReference(op)
		for _, dt := range types {
			for _, at := range types {
				for _, bt := range types {
					for _, sat := range []string{"", ".sat"} {
						for _, second := range []string{"", ".add", ".min", ".max", "merge"} {
							n++
							da, sa, sb := "", sels[n%7], sels[n/7%7]
							mod := second
							if second == "merge" {
								da, mod = sels[1+n%6], ""
							}
							ins := instruction{
								op: fmt.Sprintf("%s.%s.%s.%s%s%s", op, dt, at, bt, sat, mod), dst: 32, src: []int{32, 32, 32},
								want: func(v []uint64) uint64 {
									to := fields[da]
									x := f(fields[sa].get(v[0], isSigned(at)), fields[sb].get(v[1], isSigned(bt)))
									if sat != "" {
										x = number(clamped(x, to.width, isSigned(dt)), to.width, isSigned(dt))
									}
									c := number(v[2], 32, isSigned(dt))
									switch second {
									case ".add":
										x = new(big.Int).Add(x, c)
									case ".min":
										x = smaller(x, c)
									case ".max":
										x = larger(x, c)
									case "merge":
										return to.put(v[2], x)
									}
									return wrapped(x, 32)
								},
							}
							list = append(list, ins.withSelectors(da, sa, sb))
						}
					}
				}
			}
		}
	}
	list = append(list, videoShifts()...)
	list = append(list, videoProducts()...)
	return append(list, videoVectors()...)
}

func videoShifts() []instruction {
	var list []instruction
	for _, op := range []string{"vshl", "vshr"} {
		for _, at := range []string{"u32", "s32"} {
			for _, mode := range []string{"clamp", "wrap"} {
				for _, sat := range []string{"", ".sat"} {
					list = append(list, instruction{
						op: fmt.Sprintf("%s.s32.%s.u32%s.%s", op, at, sat, mode), dst: 32, src: []int{32, 32}, want: func(v []uint64) uint64 {
							b := fields["b1"].get(v[1], false).Uint64()
							if mode == "wrap" {
								b &= 31
							}
							a := fields["h1"].get(v[0], isSigned(at))
							x := new(big.Int).Rsh(a, uint(min(b, 32)))
							if op == "vshl" {
								x = new(big.Int).Lsh(a, uint(min(b, 32)))
							}
							if sat != "" {
								return clamped(x, 32, true)
							}
							return wrapped(x, 32)
						},
					}.withSelectors("", "h1", "b1"))
				}
			}
		}
	}
	for _, cmp := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		holds := func(c int) bool {
			return map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[cmp]
		}
		list = append(list, instruction{op: "vset.s32.u32." + cmp + ".add", dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			return v[2] + yes(holds(fields["b3"].get(v[0], true).Cmp(fields["b0"].get(v[1], false))))
		}}.withSelectors("", "b3", "b0"))
		list = append(list, instruction{op: "vset4.s32.u32." + cmp, dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			out := v[2]
			for i := range 4 {
				b := portion{8 * i, 8}
				out = b.put(out, big.NewInt(int64(yes(holds(b.get(v[0], true).Cmp(b.get(v[1], false)))))))
			}
			return out
		}})
	}
	return list
}

func videoProducts() []instruction {
	var list []instruction
	for _, c := range []struct {
		types  string
		a, b   bool // signed
		sa, sb string
		negA   bool
		negC   bool
		po     bool
		scale  uint
		sat    bool
	}{
		{types: "s32.s32.u32", a: true, sa: "h0", sb: "b2", sat: true},
		{types: "u32.u32.u32", sa: "h0", sb: "h1", scale: 15},
		{types: "u32.u32.u32", sa: "", sb: "", scale: 7, sat: true},
		{types: "s32.s32.s32", a: true, b: true, sa: "", sb: "", negC: true, sat: true},
		{types: "s32.u32.u32", sa: "", sb: "h0", negA: true, scale: 7, sat: true},
		{types: "s32.u32.s32", b: true, sa: "b1", sb: "", po: true, scale: 7},
		{types: "u32.u32.u32", sa: "", sb: "", po: true, scale: 15, sat: true},
	} {
		op := "vmad." + c.types
		if c.po {
			op += ".po"
		}
		if c.sat {
			op += ".sat"
		}
		if c.scale > 0 {
			op += fmt.Sprint(".shr", c.scale)
		}
		ins := instruction{op: op, dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
			x := new(big.Int).Mul(fields[c.sa].get(v[0], c.a), fields[c.sb].get(v[1], c.b))
			sign := c.a || c.b || c.negA || c.negC
			z := number(v[2], 32, sign)
			if c.negA {
				x.Neg(x)
			}
			if c.negC {
				z = new(big.Int).Neg(z)
			}
			x.Add(x, z)
			if c.po {
				x.Add(x, big.NewInt(1))
			}
			x.Rsh(x, c.scale)
			if c.sat {
				return clamped(x, 32, sign)
			}
			return wrapped(x, 32)
		}}.withSelectors("", c.sa, c.sb)
		if c.negA {
			ins.minus = 1
		}
		if c.negC {
			ins.minus = 3
		}
		list = append(list, ins)
	}
	return list
}

// videoVectors are operations on halves and bytes, picked at will.
func videoVectors() []instruction {
	var list []instruction
	picks := map[int][]string{2: {"", "h10", "h32", "h03", "h22"}, 4: {"", "b3210", "b7654", "b0426", "b5555"}}
	masks := map[int][]string{2: {"", "h0", "h1", "h10"}, 4: {"", "b0", "b31", "b210", "b3210"}}
	n := 0
	for _, op := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"} {
		f := videoReference(op)
		for _, parts := range []int{2, 4} {
			width := 32 / parts
			for _, types := range []string{"u32.u32.u32", "s32.s32.s32", "s32.u32.s32", "u32.s32.u32"} {
				for _, mod := range []string{"", ".sat", ".add"} {
					n++
					sa, sb, mask := picks[parts][n%5], picks[parts][n/5%5], masks[parts][n%len(masks[parts])]
					dt, at, bt := isSigned(types), isSigned(types[4:]), isSigned(types[8:])
					chosen := func(sel string, i, first int) int {
						if sel == "" {
							return first + i
						}
						return int(sel[len(sel)-1-i] - '0')
					}
					list = append(list, instruction{op: fmt.Sprintf("%s%d.%s%s", op, parts, types, mod), dst: 32, src: []int{32, 32, 32}, want: func(v []uint64) uint64 {
						both := v[1]<<32 | v[0]
						out := v[2]
						for i := range parts {
							if mask != "" && !strings.Contains(mask[1:], fmt.Sprint(i)) {
								continue
							}
							x := f(portion{chosen(sa, i, 0) * width, width}.get(both, at), portion{chosen(sb, i, parts) * width, width}.get(both, bt))
							switch mod {
							case ".sat":
								x = number(clamped(x, width, dt), width, dt)
							case ".add":
								out = wrapped(new(big.Int).Add(new(big.Int).SetUint64(out), x), 32)
								continue
							}
							out = portion{i * width, width}.put(out, x)
						}
						return out
					}}.withSelectors(mask, sa, sb))
				}
			}
		}
	}
	return list
}

func TestVideoInstructions(t *testing.T) {
	for _, ins := range videoInstructions() {
		ins.n = 128
		t.Run(fmt.Sprint(ins.op, ins.selectors), ins.check)
	}
}
