package vm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench/vm"
)

// elements are how random bits become elements of a type: of a word's bits keep
// some and set others, so that floats have exponents near those of 1.
var elements = map[string]struct{ keep, set uint32 }{
	"f16": {0x83ff83ff, 0x38003800}, "bf16": {0x80ff80ff, 0x3f003f00}, "tf32": {0x80ffffff, 0x3f000000},
	"e4m3": {0x8f8f8f8f, 0x30303030}, "e5m2": {0x87878787, 0x38383838}, "bits": {0xffffffff, 0},
}

// timedMma is an instruction of one warp: what stands behind mma, the elements of
// A and B, and how many registers of A, B and the sums it has.
type timedMma struct {
	mods, elements string
	a, b, c        int
	target         string
}

var timedMmas = []timedMma{
	{"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f16", 4, 2, 4, "sm_80"},
	{"sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "f16", 4, 2, 2, "sm_80"},
	{"sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", 4, 2, 4, "sm_80"},
	{"sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", 4, 2, 4, "sm_80"},
	{"sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", 4, 2, 4, "sm_89"},
	{"sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", 4, 2, 4, "sm_90"},
	{"sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32", "bits", 4, 2, 4, "sm_120a"},
	{"sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e5m2.f32.ue8m0", "e5m2", 4, 2, 4, "sm_120a"},
	{"sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "bits", 4, 2, 4, "sm_120a"},
	{"sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "bits", 4, 2, 4, "sm_120a"},
	{"sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "bits", 4, 2, 4, "sm_80"},
	{"sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "bits", 4, 2, 4, "sm_80"},
	{"sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "bits", 4, 2, 4, "sm_80"},
	{"sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", 1, 1, 2, "sm_80"},
	{"sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "f64", 8, 4, 4, "sm_90"},
	{"sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "f16", 4, 4, 4, "sm_80"},
	{"sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "tf32", 4, 4, 4, "sm_80"},
	{"sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", "e4m3", 4, 4, 4, "sm_89"},
	{"sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "bits", 4, 4, 4, "sm_80"},
	{"sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "bits", 4, 4, 4, "sm_120a"},
}

// program is a warp that repeats the product.
func (m timedMma) program(rounds int) small {
	var body strings.Builder
	bits, operands := "b32", []string{registers("%c", m.c), registers("%a", m.a), registers("%b", m.b), registers("%c", m.c)}
	fmt.Fprintf(&body, "mad.lo.u32 %%x, %%t, 7919, 12345; mov.b32 %%e, 0x44444444; mov.b32 %%f, 0x7f7f7f7f; mov.u32 %%i, 0;\n")
	if strings.Contains(m.mods, "ue4m3") {
		body.WriteString("mov.b32 %f, 0x38383838;\n")
	}
	for _, o := range []struct {
		name string
		n    int
	}{{"a", m.a}, {"b", m.b}} {
		for i := range o.n {
			body.WriteString("mad.lo.u32 %x, %x, 1664525, 1013904223; xor.b32 %y, %x, 0x5bd1e995;\n")
			if m.elements == "f64" {
				fmt.Fprintf(&body, "and.b32 %%y, %%y, 0x800fffff; or.b32 %%y, %%y, 0x3fe00000; mov.b64 %%%s%d, {%%x, %%y};\n", o.name, i)
				continue
			}
			e := elements[m.elements]
			fmt.Fprintf(&body, "shr.u32 %%y, %%y, 7; xor.b32 %%y, %%y, %%x; and.b32 %%y, %%y, 0x%x; or.b32 %%%s%d, %%y, 0x%x;\n", e.keep, o.name, i, e.set)
		}
	}
	for i := range m.c {
		if m.elements == "f64" {
			bits = "b64"
		}
		fmt.Fprintf(&body, "mov.%s %%c%d, 0;\n", bits, i)
	}
	if strings.HasPrefix(m.mods, "sp") {
		operands = append(operands, "%e", "0")
	}
	if strings.Contains(m.mods, "block_scale") {
		operands = append(operands, "%f", "{0, 0}", "%f", "{0, 0}")
	}
	fmt.Fprintf(&body, "L: mma.%s %s;\nadd.u32 %%i, %%i, 1; setp.lt.u32 %%p, %%i, %d; @%%p bra L;", m.mods, strings.Join(operands, ", "), rounds)
	return small{
		target: m.target, block: 32, body: body.String(),
		regs: fmt.Sprintf(".reg .%s %%a<8>, %%b<4>, %%c<4>; .reg .b32 %%x, %%y, %%e, %%f, %%i; .reg .pred %%p;", bits),
	}
}

// timedWgmmas are the types of one warpgroup's products, and the sums'.
var timedWgmmas = []struct{ name, elements, mods, rest string }{
	{"f16", "f16", "k16.f32.f16.f16", ", 1, 1, 0, 0"},
	{"tf32", "tf32", "k8.f32.tf32.tf32", ", 1, 1"},
	{"e4m3", "e4m3", "k32.f32.e4m3.e4m3", ", 1, 1"},
	{"s8", "bits", "k32.s32.s8.s8", ""},
	{"b1", "bits", "k256.s32.b1.b1.and.popc", ""},
	{"sparse f16", "f16", "k32.f32.f16.f16", ", 1, 1, 0, 0"},
	{"sparse e4m3", "e4m3", "k64.f32.e4m3.e4m3", ", 1, 1"},
}

// wgmmaProgram is a warpgroup that repeats a product of 64 by 128.
func wgmmaProgram(i, rounds int) small {
	w := timedWgmmas[i]
	e := elements[w.elements]
	kind, b, meta := strings.TrimSuffix(w.mods, ".and.popc"), int64(uint64(tensorReserved+8192)>>4|8<<16|16<<32), ""
	op := ""
	if strings.Contains(w.mods, "popc") {
		op = ".and.popc"
	}
	sparse := ""
	if strings.HasPrefix(w.name, "sparse") {
		sparse, meta = ".sp", " %e, 0,"
	}
	body := fmt.Sprintf(`shl.b32 %%i, %%t, 2; mad.lo.u32 %%x, %%t, 7919, 12345;
F: mad.lo.u32 %%x, %%x, 1664525, 1013904223; shr.u32 %%y, %%x, 7; xor.b32 %%y, %%y, %%x; and.b32 %%y, %%y, 0x%x; or.b32 %%y, %%y, 0x%x;
mov.u32 %%v, sm; add.u32 %%v, %%v, %%i; st.shared.u32 [%%v], %%y; add.u32 %%i, %%i, 512; setp.lt.u32 %%p, %%i, 32768; @%%p bra F;
fence.proxy.async; bar.sync 0; mov.b32 %%e, 0x44444444; mov.b64 %%da, %d; mov.b64 %%db, %d; mov.u32 %%i, 0; setp.ne.u32 %%q, %%i, 1;
`, e.keep, e.set, int64(uint64(tensorReserved)>>4|8<<16|16<<32), b)
	for i := range 64 {
		body += fmt.Sprintf("mov.b32 %%d%d, 0;\n", i)
	}
	body += fmt.Sprintf(`wgmma.fence.sync.aligned;
L: wgmma.mma_async%s.sync.aligned.m64n128%s%s %s, %%da, %%db,%s %%q%s;
add.u32 %%i, %%i, 1; setp.lt.u32 %%p, %%i, %d; @%%p bra L;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;`, sparse, kind, op, registers("%d", 64), meta, w.rest, rounds)
	return small{
		target: "sm_90a", decls: sharedDecl, dynamic: 49152, block: 128, body: body,
		regs: ".reg .b32 %d<64>, %i, %v, %x, %y, %e; .reg .b64 %da, %db; .reg .pred %p, %q;",
	}
}

// timedTensor is a product of tensor memory of 128 by 128: bytes along K of A and
// B, bits of the descriptor beside the sizes, and what the kind has more.
var timedTensors = []struct {
	mods, elements string
	a, b           int
	types          uint32
}{
	{"kind::f16", "f16", 32, 32, 1 << 4},
	{"kind::tf32", "tf32", 32, 32, 1<<4 | 2<<7 | 2<<10},
	{"kind::f8f6f4", "e4m3", 32, 32, 1 << 4},
	{"kind::i8", "bits", 32, 32, 2<<4 | 1<<7 | 1<<10},
	{"kind::mxf8f6f4.block_scale", "e4m3", 32, 32, 1 << 23},
	{"kind::mxf4.block_scale", "bits", 32, 32, 1<<23 | 1<<7 | 1<<10},
	{"kind::mxf4nvf4.block_scale.block16", "bits", 32, 32, 1<<7 | 1<<10},
	{"sp kind::f16", "f16", 32, 64, 1<<2 | 1<<4},
	{"sp kind::tf32", "tf32", 32, 64, 1<<2 | 1<<4 | 2<<7 | 2<<10},
	{"sp kind::f8f6f4", "e4m3", 32, 64, 1<<2 | 1<<4},
	{"sp kind::i8", "bits", 32, 64, 1<<2 | 2<<4 | 1<<7 | 1<<10},
	{"sp kind::mxf4.block_scale", "bits", 32, 64, 1<<2 | 1<<23 | 1<<7 | 1<<10},
}

// tensorRounds is a block that repeats a product of tensor memory.
func tensorRounds(i, rounds int) tensorProgram {
	c := timedTensors[i]
	r := rand.New(rand.NewPCG(7, uint64(i)))
	e := elements[c.elements]
	rows := func(bytes int) [][]byte {
		all := make([][]byte, 128)
		for i := range all {
			for range bytes / 4 {
				all[i] = append(all[i], words(r.Uint32()&e.keep|e.set)...)
			}
		}
		return all
	}
	image := make([]byte, 16<<10)
	da, end := plainMatrix(image, 0, rows(c.a))
	db, _ := plainMatrix(image, end, rows(c.b))
	const columns, metaAt, factorsAt = 160, 128, 136
	initial := make([]uint32, 128*columns)
	factors := uint32(0x7f7f7f7f)
	if strings.Contains(c.mods, "nvf4") {
		factors = 0x38383838
	}
	for lane := range 128 {
		for i := range 8 {
			initial[lane*columns+metaAt+i], initial[lane*columns+factorsAt+i] = 0x44444444, factors
		}
	}
	kind, sparse := strings.CutPrefix(c.mods, "sp ")
	idesc := c.types | 128>>3<<17
	sp, meta, scales := "", "", ""
	if sparse {
		sp, meta = ".sp", " [%xm],"
	}
	if strings.Contains(kind, "block_scale") {
		idesc |= 128 >> 7 << 27
		scales = " [%xs], [%xs],"
	} else {
		idesc |= 128 >> 4 << 24
	}
	return tensorProgram{
		image: image, columns: columns, initial: initial, regs: ".reg .b32 %id, %xm, %xs, %r; .reg .b64 %da, %db; .reg .pred %pk;",
		issue: fmt.Sprintf("mov.b64 %%da, %d; mov.b64 %%db, %d; mov.b32 %%id, %d; mov.pred %%pk, 1; add.u32 %%xm, %%tm, %d; add.u32 %%xs, %%tm, %d; mov.u32 %%r, 0;\n"+
			"R: @%%p0 tcgen05.mma%s.cta_group::1.%s [%%tm], %%da, %%db,%s %%id,%s %%pk;\nadd.u32 %%r, %%r, 1; setp.lt.u32 %%p, %%r, %d; @%%p bra R;",
			int64(da), int64(db), int32(idesc), metaAt, factorsAt, sp, kind, meta, scales, rounds),
	}
}

// BenchmarkExact runs products of every kind as tensor cores add, on one core and
// without checks: the rate that `--tensor exact` is held to.
func BenchmarkExact(b *testing.B) {
	time := func(name string, run func(opt vm.Options) int64) {
		b.Run(name, func(b *testing.B) {
			none, err := vm.ParseChecks("none")
			require.NoError(b, err)
			operations := int64(0)
			before := cpuTime()
			for b.Loop() {
				operations += run(vm.Options{Workers: 1, Tensor: vm.Fused, Checks: none})
			}
			b.ReportMetric(float64(operations)/(cpuTime()-before).Seconds()/1e9, "GFLOP/cpu-s")
		})
	}
	count := func(p small, opt vm.Options, buffers ...[]byte) (operations int64) {
		p.opt = opt
		_, report := p.run(b, buffers...)
		for _, t := range report.Counters.Tensor {
			operations += t.Operations
		}
		return operations
	}
	for _, m := range timedMmas {
		rounds := 4000
		if strings.Contains(m.mods, "m8n8k4") {
			rounds = 60000
		}
		time("mma."+m.mods+"/"+m.target, func(opt vm.Options) int64 { return count(m.program(rounds), opt) })
	}
	for i, w := range timedWgmmas {
		time("wgmma."+w.name, func(opt vm.Options) int64 { return count(wgmmaProgram(i, 100), opt) })
	}
	for i, c := range timedTensors {
		time("tcgen05.mma."+c.mods, func(opt vm.Options) int64 {
			p := tensorRounds(i, 240)
			return count(p.small(), opt, p.buffers()...)
		})
	}
}
