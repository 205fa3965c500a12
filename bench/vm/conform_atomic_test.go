package vm_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// combination is what atomic operations and reductions do to an element of memory:
// the new value from the old one and the operands, worked out here on its own.
type combination struct {
	op, typ string
	bits    int
	f       func(old, b, c uint64) uint64
	values  func(r *rand.Rand, bits int) uint64
}

func (c combination) String() string { return c.op + "." + c.typ }

// combinations are all of them, of single elements.
func combinations() []combination {
	var list []combination
	add := func(op, typ string, bits int, f func(old, b, c uint64) uint64) {
		list = append(list, combination{op, typ, bits, f, anyBits})
	}
	for _, n := range []int{32, 64} {
		b := fmt.Sprintf("b%d", n)
		add("and", b, n, func(old, b, _ uint64) uint64 { return old & b })
		add("or", b, n, func(old, b, _ uint64) uint64 { return old | b })
		add("xor", b, n, func(old, b, _ uint64) uint64 { return old ^ b })
		add("exch", b, n, func(_, b, _ uint64) uint64 { return b })
		for _, t := range []string{"u", "s"} {
			name := fmt.Sprintf("%s%d", t, n)
			less := func(a, b uint64) bool { return number(a, n, t == "s").Cmp(number(b, n, t == "s")) < 0 }
			if name != "s64" {
				add("add", name, n, func(old, b, _ uint64) uint64 {
					return wrapped(new(big.Int).Add(number(old, n, false), number(b, n, false)), n)
				})
			}
			add("min", name, n, func(old, b, _ uint64) uint64 {
				if less(b, old) {
					return b
				}
				return old
			})
			add("max", name, n, func(old, b, _ uint64) uint64 {
				if less(old, b) {
					return b
				}
				return old
			})
		}
	}
	add("inc", "u32", 32, func(old, b, _ uint64) uint64 {
		if old >= b {
			return 0
		}
		return old + 1
	})
	add("dec", "u32", 32, func(old, b, _ uint64) uint64 {
		if old == 0 || old > b {
			return b
		}
		return old - 1
	})
	for _, n := range []int{16, 32, 64} {
		list = append(list, combination{"cas", fmt.Sprintf("b%d", n), n, func(old, b, c uint64) uint64 {
			if old == b {
				return c
			}
			return old
		}, func(r *rand.Rand, _ int) uint64 { return uint64(r.IntN(3)) }})
	}
	for _, f := range []format{half, brain, single, double} {
		sum := combination{"add", f.name, f.bits, func(old, b, _ uint64) uint64 { return f.fma(old, f.one(), b, "rn") }, floatValues(f)}
		if f.bits == 16 {
			sum.op = "add.noftz"
		}
		list = append(list, sum)
	}
	for _, f := range []format{half, brain} {
		for _, op := range []string{"min", "max"} {
			list = append(list, combination{op + ".noftz", f.name, 16, func(old, b, _ uint64) uint64 { return f.extreme(old, b, op == "max") }, floatValues(f)})
		}
	}
	return list
}

// extreme is the smaller or larger of two values: a number before NaN, and -0
// below +0.
func (f format) extreme(a, b uint64, larger bool) uint64 {
	x, y := f.value(a), f.value(b)
	switch {
	case x != x && y != y:
		return f.nan()
	case x != x:
		return b
	case y != y:
		return a
	case x == y && math.Signbit(x) == larger, x != y && (x < y) == larger:
		return b
	}
	return a
}

// flushing is a sum of f32 in global memory, which has no subnormals.
func (c combination) flushing() combination {
	if c.String() == "add.f32" {
		f := c.f
		c.f = func(old, b, x uint64) uint64 { return single.flush(f(single.flush(old), single.flush(b), x)) }
	}
	return c
}

// atomicForm is a way to write an operation, of n elements.
type atomicForm struct {
	combination
	n      int
	packed bool // two elements in a register
	space  string
	how    string // ".relaxed.gpu"
}

// atomicForms are the operations in every space, with all orders and scopes in turn.
func atomicForms() []atomicForm {
	var forms []atomicForm
	hows := []string{"", ".relaxed", ".acquire.cta", ".release.cluster", ".acq_rel.gpu", ".relaxed.sys", ".cta", ".gpu"}
	for i, c := range combinations() {
		how := hows[i%len(hows)]
		small := strings.Contains(c.op, "noftz")
		for _, space := range []string{"", ".global", ".shared", ".shared::cta", ".shared::cluster"} {
			if strings.HasPrefix(c.op, "m") && small {
				continue // of vectors alone
			}
			forms = append(forms, atomicForm{c, 1, false, space, how})
			if small {
				forms = append(forms, atomicForm{c, 2, true, space, how})
			}
		}
		sizes := []int{}
		switch {
		case small:
			sizes = []int{2, 4, 8}
		case c.String() == "add.f32":
			sizes = []int{2, 4}
		}
		for _, n := range sizes {
			forms = append(forms, atomicForm{c, n, false, ".global", how})
			if small && n > 2 {
				forms = append(forms, atomicForm{c, n, true, ".global", how})
			}
		}
	}
	return forms
}

// text is the operation in a program: the register list of a name, and the opcode.
func (f atomicForm) opcode(name string) string {
	words := name + f.how + f.space + "." + f.op
	n, typ := f.n, f.typ
	if f.packed {
		n, typ = n/2, typ+"x2"
	}
	if n > 1 {
		words += fmt.Sprintf(".v%d", n)
	}
	return words + "." + typ
}

// registers are the operands' registers of a prefix, and how they are loaded.
func (f atomicForm) registers(prefix string) (list string, count, bits int) {
	count, bits = f.n, f.bits
	if f.packed {
		count, bits = f.n/2, 32
	}
	if count == 1 {
		return prefix + "0", 1, bits
	}
	return regList(prefix, count), count, bits
}

func TestAtomicForms(t *testing.T) {
	for _, f := range atomicForms() {
		for _, returns := range []bool{true, false} {
			if !returns && (f.op == "exch" || f.op == "cas" || strings.HasPrefix(f.how, ".acq")) {
				continue
			}
			name := map[bool]string{true: "atom", false: "red"}[returns]
			t.Run(f.opcode(name), func(t *testing.T) { f.check(t, name) })
		}
	}
}

// check applies the operation in each of 128 threads to a slot of its own.
func (f atomicForm) check(t *testing.T, name string) {
	const threads, slot = 128, 16
	r := rand.New(rand.NewPCG(uint64(len(f.opcode(name))), 3))
	var in [3][]byte // memory, b, c
	vals := [3][]uint64{}
	for j := range in {
		in[j] = make([]byte, threads*slot)
		for i := range threads * f.n {
			v := f.values(r, f.bits) & (1<<f.bits - 1)
			vals[j] = append(vals[j], v)
			at := in[j][i/f.n*slot+i%f.n*f.bits/8:]
			copy(at, binary.LittleEndian.AppendUint64(nil, v)[:f.bits/8])
		}
	}
	b, count, bits := f.registers("%b")
	c, _, _ := f.registers("%c")
	d, _, _ := f.registers("%d")
	var body strings.Builder
	body.WriteString("mad.wide.u32 %m, %t, 16, %in0; mad.wide.u32 %x, %t, 16, %in1; mad.wide.u32 %y, %t, 16, %in2; mad.wide.u32 %o, %t, 16, %in3;\n")
	for i := range count {
		fmt.Fprintf(&body, "ld.global.b%d %%b%d, [%%x+%d]; ld.global.b%d %%c%d, [%%y+%d];\n", bits, i, i*bits/8, bits, i, i*bits/8)
	}
	where := "%m"
	shared := strings.HasPrefix(f.space, ".shared")
	if shared {
		where = "%s"
		body.WriteString("mov.u64 %s, sm; mad.wide.u32 %s, %t, 16, %s; ld.global.v2.b64 {%w, %v}, [%m]; st.shared.v2.b64 [%s], {%w, %v};\n")
	}
	operands := fmt.Sprintf("[%s], %s", where, b)
	if f.op == "cas" {
		operands += ", " + c
	}
	if name == "atom" {
		operands = d + ", " + operands
	}
	fmt.Fprintf(&body, "%s %s;\n", f.opcode(name), operands)
	if shared {
		body.WriteString("ld.shared.v2.b64 {%w, %v}, [%s]; st.global.v2.b64 [%m], {%w, %v};\n")
	}
	if name == "atom" {
		for i := range count {
			fmt.Fprintf(&body, "st.global.b%d [%%o+%d], %%d%d;\n", bits, i*bits/8, i)
		}
	}
	p := small{
		target: "sm_90", decls: fmt.Sprintf(".shared .align 16 .b8 sm[%d];", threads*slot),
		regs: fmt.Sprintf(".reg .b64 %%m, %%x, %%y, %%o, %%s, %%w, %%v; .reg .b%d %%b<8>, %%c<8>, %%d<8>;", bits),
		body: body.String(), block: threads,
	}
	out, report := p.run(t, in[0], in[1], in[2], make([]byte, threads*slot))
	require.Empty(t, report.Faults)
	want := f.combination
	if !shared {
		want = want.flushing()
	}
	element := func(data []byte, i int) uint64 {
		var v [8]byte
		copy(v[:f.bits/8], data[i/f.n*slot+i%f.n*f.bits/8:])
		return binary.LittleEndian.Uint64(v[:])
	}
	for i := range threads * f.n {
		old := vals[0][i]
		require.Equal(t, want.f(old, vals[1][i], vals[2][i]), element(out[0], i), "of %#x, %#x, %#x", old, vals[1][i], vals[2][i])
		if name == "atom" {
			require.Equal(t, old, element(out[3], i), "the old value")
		}
	}
}

// TestAtomicWide is exch and cas of 128 bits, which compare and write as one.
func TestAtomicWide(t *testing.T) {
	for _, space := range []string{"", ".global", ".shared"} {
		for _, op := range []string{"exch", "cas"} {
			t.Run(op+space, func(t *testing.T) {
				const threads = 64
				r := rand.New(rand.NewPCG(1, 8))
				var in [3][]byte
				for j := range in {
					for range threads {
						in[j] = append(in[j], longs(uint64(r.IntN(2)), uint64(r.IntN(2)))...)
					}
				}
				where, before, after := "%m", "", ""
				if space == ".shared" {
					where = "%s"
					before = "mov.u64 %s, sm; mad.wide.u32 %s, %t, 16, %s; ld.global.b128 %q3, [%m]; st.shared.b128 [%s], %q3;"
					after = "ld.shared.b128 %q3, [%s]; st.global.b128 [%m], %q3;"
				}
				operands := "%q1"
				if op == "cas" {
					operands = "%q1, %q2"
				}
				p := small{
					target: "sm_90", decls: ".shared .align 16 .b8 sm[1024];", block: threads,
					regs: ".reg .b64 %m, %x, %y, %o, %s; .reg .b128 %q<4>;",
					body: "mad.wide.u32 %m, %t, 16, %in0; mad.wide.u32 %x, %t, 16, %in1; mad.wide.u32 %y, %t, 16, %in2; mad.wide.u32 %o, %t, 16, %in3;\n" +
						"ld.global.b128 %q1, [%x]; ld.global.b128 %q2, [%y];" + before +
						"\natom" + space + "." + op + ".b128 %q0, [" + where + "], " + operands + ";\n" + after + "st.global.b128 [%o], %q0;",
				}
				out, report := p.run(t, in[0], in[1], in[2], make([]byte, threads*16))
				require.Empty(t, report.Faults)
				for i := range threads {
					at := func(b []byte) string { return string(b[16*i : 16*i+16]) }
					want := at(in[1])
					if op == "cas" {
						want = at(in[0])
						if want == at(in[1]) {
							want = at(in[2])
						}
					}
					require.Equal(t, want, at(out[0]))
					require.Equal(t, at(in[0]), at(out[3]))
				}
			})
		}
	}
}
