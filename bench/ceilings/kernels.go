package ceilings

import (
	"fmt"
	"strings"
)

// The launches: what fills an SM of every architecture with loads under way.
const (
	threads     = 256
	blocksPerSM = 8
	unroll      = 4  // loads of a thread under way
	chains      = 8  // independent accumulators of a thread, or of a warp's products
	fmaRepeat   = 16 // FMAs of a chain in a round
	mmaRepeat   = 4
)

// header begins a module for a compute capability such as 90: what sm_80 has is enough.
func header(sm int) string {
	sm = min(sm, 80)
	return fmt.Sprintf(".version 7.0\n.target sm_%d\n.address_size 64\n\n", sm)
}

// stream writes a kernel that walks over buffers: its loads, what it makes of them and
// its stores, of 16 bytes a thread each. Thread i of all begins at piece i; steps times it
// moves unroll pieces of every thread on, and rounds times it walks the whole way.
func stream(name string, reads int, writes bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 skip, .param .u32 steps, .param .u32 rounds)\n{\n", name)
	b.WriteString(`	.reg .pred %p<3>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<16>;
	.reg .f32 %s<5>, %v<33>;
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u64 %rd3, [c];
	ld.param.u64 %rd4, [skip];
	ld.param.u32 %r5, [steps];
	ld.param.u32 %r6, [rounds];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r1, %r2, %r3, %r1;
	mul.wide.u32 %rd5, %r1, 16;
	mov.f32 %s1, 0f00000000;
	mov.f32 %s2, 0f00000000;
	mov.f32 %s3, 0f00000000;
	mov.f32 %s4, 0f00000000;
ROUND:
	mov.u64 %rd6, %rd5;
	mov.u32 %r7, %r5;
STEP:
`)
	for u := range unroll {
		if u > 0 {
			fmt.Fprintf(&b, "\tadd.u64 %%rd%d, %%rd%d, %%rd4;\n", 6+u, 5+u)
		}
	}
	for u := range unroll {
		for r := range reads {
			fmt.Fprintf(&b, "\tadd.u64 %%rd10, %%rd%d, %%rd%d;\n\tld.global.v4.f32 {%s}, [%%rd10];\n", 1+r, 6+u, vector("v", 16*r+4*u+1))
		}
	}
	for u := range unroll {
		for i := range 4 {
			v := 4*u + i + 1
			switch {
			case !writes:
				fmt.Fprintf(&b, "\tadd.f32 %%s%[1]d, %%s%[1]d, %%v%[2]d;\n", i+1, v)
			case reads == 1:
				fmt.Fprintf(&b, "\tmul.f32 %%v%d, %%v%[1]d, 0f3F800000;\n", v)
			case reads == 2:
				fmt.Fprintf(&b, "\tfma.rn.f32 %%v%[1]d, %%v%[1]d, 0f3F800000, %%v%[2]d;\n", v, v+16)
			default:
				fmt.Fprintf(&b, "\tmov.f32 %%v%d, 0f3F800000;\n", v)
			}
		}
		if writes {
			fmt.Fprintf(&b, "\tadd.u64 %%rd10, %%rd3, %%rd%d;\n\tst.global.v4.f32 [%%rd10], {%s};\n", 6+u, vector("v", 4*u+1))
		}
	}
	fmt.Fprintf(&b, "\tadd.u64 %%rd6, %%rd%d, %%rd4;\n", 5+unroll)
	b.WriteString(`	sub.u32 %r7, %r7, 1;
	setp.ne.u32 %p1, %r7, 0;
	@%p1 bra STEP;
	sub.u32 %r6, %r6, 1;
	setp.ne.u32 %p1, %r6, 0;
	@%p1 bra ROUND;
`)
	b.WriteString(keep("s", 4))
	return b.String()
}

// vector names four registers in a row.
func vector(name string, first int) string {
	return fmt.Sprintf("%%%[1]s%[2]d, %%%[1]s%[3]d, %%%[1]s%[4]d, %%%[1]s%[5]d", name, first, first+1, first+2, first+3)
}

// keep ends a kernel: its sums are stored if they come to what they never do, so that no
// compiler leaves their arithmetic out.
func keep(name string, n int) string {
	var b strings.Builder
	for i := 2; i <= n; i++ {
		fmt.Fprintf(&b, "\tadd.f32 %%%[1]s1, %%%[1]s1, %%%[1]s%[2]d;\n", name, i)
	}
	fmt.Fprintf(&b, "\tsetp.neu.f32 %%p2, %%%s1, 0fC2F6E979;\n\t@%%p2 bra DONE;\n\tst.global.f32 [%%rd3], %%%[1]s1;\nDONE:\n\tret;\n}\n\n", name)
	return b.String()
}

// fma writes a kernel of nothing but f32 FMAs: rounds x chains x fmaRepeat a thread.
func fma() string {
	var b strings.Builder
	b.WriteString(`.visible .entry fma(.param .u64 c, .param .u32 rounds)
{
	.reg .pred %p<3>;
	.reg .b32 %r<3>;
	.reg .b64 %rd<4>;
	.reg .f32 %s<9>, %x<3>;
	ld.param.u64 %rd3, [c];
	ld.param.u32 %r1, [rounds];
	mov.u32 %r2, %tid.x;
	cvt.rn.f32.u32 %x1, %r2;
	mov.f32 %x2, 0f3F7FFFFF;
`)
	for i := range chains {
		fmt.Fprintf(&b, "\tmov.f32 %%s%d, %%x1;\n", i+1)
	}
	b.WriteString("ROUND:\n")
	for range fmaRepeat {
		for i := range chains {
			fmt.Fprintf(&b, "\tfma.rn.f32 %%s%d, %%s%[1]d, %%x2, %%x1;\n", i+1)
		}
	}
	b.WriteString("\tsub.u32 %r1, %r1, 1;\n\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra ROUND;\n")
	b.WriteString(keep("s", chains))
	return b.String()
}

// product is mma.sync's shape and types for a compute capability.
type product struct {
	name, instruction string
	a, b              int // registers of the operands
	flops             float64
}

func productOf(sm int) product {
	if sm < 80 {
		return product{"fp16", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 2 * 16 * 8 * 8}
	}
	return product{"bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 2 * 16 * 8 * 16}
}

// mma writes a kernel of nothing but products: rounds x chains x mmaRepeat a warp.
func mma(p product) string {
	var b strings.Builder
	fmt.Fprintf(&b, `.visible .entry mma(.param .u64 c, .param .u32 rounds)
{
	.reg .pred %%p<3>;
	.reg .b32 %%r<3>, %%a<5>;
	.reg .b64 %%rd<4>;
	.reg .f32 %%s<%d>;
	ld.param.u64 %%rd3, [c];
	ld.param.u32 %%r1, [rounds];
	mov.u32 %%r2, %%tid.x;
`, 4*chains+1)
	for i := range 4 {
		fmt.Fprintf(&b, "\tmov.b32 %%a%d, %%r2;\n", i+1)
	}
	for i := range 4 * chains {
		fmt.Fprintf(&b, "\tmov.f32 %%s%d, 0f00000000;\n", i+1)
	}
	b.WriteString("ROUND:\n")
	list := []string{"%a1", "%a2", "%a3", "%a4"}
	for range mmaRepeat {
		for i := range chains {
			d := vector("s", 4*i+1)
			fmt.Fprintf(&b, "\t%s {%s}, {%s}, {%s}, {%s};\n", p.instruction, d, strings.Join(list[:p.a], ", "), strings.Join(list[:p.b], ", "), d)
		}
	}
	b.WriteString("\tsub.u32 %r1, %r1, 1;\n\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra ROUND;\n")
	b.WriteString(keep("s", 4*chains))
	return b.String()
}
