package vm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

const wideRegs = ".reg .b128 %w<9>; .reg .b64 %ad, %a<9>, %o; .reg .b32 %n<9>;"

// TestWideRegisters copies, packs, unpacks, loads, stores and passes values of
// 128 bits, under a guard too.
func TestWideRegisters(t *testing.T) {
	p := small{
		target: "sm_90",
		decls: `.shared .align 16 .b8 sm[1024];
.func (.reg .b128 out) swapped(.reg .b128 in) { .reg .b64 l, h; mov.b128 {l, h}, in; mov.b128 out, {h, l}; ret; }`,
		regs: wideRegs + " .reg .pred %p;",
		body: `.local .align 16 .b8 loc[16];
mad.wide.u32 %ad, %t, 16, %in0; mad.wide.u32 %o, %t, 128, %in1;
ld.global.b128 %w0, [%ad];
mov.b128 {%a0, %a1}, %w0; st.global.v2.b64 [%o], {%a1, %a0};
mov.b128 {%n0, %n1, %n2, %n3}, %w0; mov.b128 %w1, {%n3, %n2, %n1, %n0}; st.global.b128 [%o+16], %w1;
call (%w2), swapped, (%w0); st.global.b128 [%o+32], %w2;
setp.lt.u32 %p, %t, 5; mov.b128 %w3, -5; @%p mov.b128 %w3, %w0; st.global.b128 [%o+48], %w3;
mad.wide.u32 %a2, %t, 16, 0; mov.u64 %a3, sm; add.u64 %a2, %a2, %a3; st.shared.b128 [%a2], %w0; ld.shared.b128 %w4, [%a2]; st.local.b128 [loc], %w4;
ld.local.b128 %w5, [loc]; mov.b128 {_, %a4}, %w5; mov.b128 {%a5, _}, %w5; st.global.v2.b64 [%o+64], {%a5, %a4};
ld.global.s32 %w6, [%ad]; st.global.b128 [%o+80], %w6;
ld.global.b64 %w7, [%ad]; st.global.b128 [%o+96], %w7; cvt.s32.s16 %w8, -3; mov.b128 {_, %a6}, %w8; add.s64 %a6, %a6, 8; cvt.u64.u64 %a7, %w0; st.global.v2.b64 [%o+112], {%a7, %a6};`,
		block: 32,
	}
	r := rand.New(rand.NewPCG(8, 3))
	in := make([]uint64, 64)
	for i := range in {
		in[i] = r.Uint64()
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toLongs(out[1])
		turn := func(v uint64) uint64 { return v>>32 | v<<32 }
		for i := range 32 {
			lo, hi := in[2*i], in[2*i+1]
			want := []uint64{hi, lo, turn(hi), turn(lo), hi, lo, lo, hi, lo, hi, 0, 0, lo, 0, lo, 7}
			if i >= 5 {
				want[6], want[7] = ^uint64(4), ^uint64(0)
			}
			small := int64(int32(lo))
			want[10], want[11] = uint64(small), uint64(small>>63)
			require.Equal(t, want, got[16*i:16*i+16], "thread %d", i)
		}
	}, longs(in...), longs(repeated(7, 32*16)...))
}

func repeated(v uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// TestWideCounts: an instruction of 128 bits counts once, and moves 16 bytes.
func TestWideCounts(t *testing.T) {
	p := small{
		regs:  wideRegs,
		body:  `mad.wide.u32 %ad, %t, 16, %in0; ld.global.b128 %w0, [%ad]; mov.b128 %w1, %w0; mov.b128 {%a0, %a1}, %w1; st.global.b128 [%ad], %w1;`,
		block: 32,
	}
	_, wide := p.run(t, make([]byte, 512))
	p.body = `mad.wide.u32 %ad, %t, 16, %in0; ld.global.v2.b64 {%a0, %a1}, [%ad]; mov.b64 %a2, %a0; mov.b64 %a3, %a1; st.global.v2.b64 [%ad], {%a0, %a1};`
	_, narrow := p.run(t, make([]byte, 512))
	require.Equal(t, narrow.Counters, wide.Counters)
}

// TestWideAtomics exchanges, and swaps where both halves are equal.
func TestWideAtomics(t *testing.T) {
	for _, space := range []string{"global", "shared", "generic"} {
		at, op := "%in0", ".global"
		switch space {
		case "shared":
			at, op = "%a8", ".shared"
		case "generic":
			op = ""
		}
		p := small{
			target: "sm_90", decls: ".shared .align 16 .b8 sm[16];", regs: wideRegs,
			body: `mov.u64 %a8, sm; ld.global.b128 %w0, [%in0]; st.shared.b128 [%a8], %w0;
mov.b128 %w1, {1, 2}; mov.b128 %w2, {1, 3}; mov.b128 %w3, {5, 6};
atom` + op + `.cas.b128 %w4, [` + at + `], %w2, %w3; st.global.b128 [%in1], %w4;
atom` + op + `.cas.b128 %w4, [` + at + `], %w1, %w3; st.global.b128 [%in1+16], %w4;
atom` + op + `.exch.b128 %w4, [` + at + `], 9; st.global.b128 [%in1+32], %w4;
atom` + op + `.exch.b128 _, [` + at + `], %w2; atom` + op + `.exch.b128 %w4, [` + at + `], %w1; st.global.b128 [%in1+48], %w4;`,
		}
		p.everywhere(t, func(out [][]byte, rep *bench.Report) {
			require.Empty(t, rep.Faults)
			require.Equal(t, []uint64{1, 2, 1, 2, 5, 6, 1, 3}, toLongs(out[1]), space)
			require.EqualValues(t, 5, rep.Counters.Atomics)
		}, longs(1, 2), make([]byte, 64))
	}
}

var wideMisdeeds = []misdeed{
	{
		name: "128 bits past the end", class: bench.GlobalOutOfBounds,
		p:   small{regs: wideRegs, block: 1, body: "ld.global.b128 %w0, [%in0+512];"},
		fix: map[string]string{"512": "496"},
	},
	{
		name: "128 bits misaligned", class: bench.MisalignedAddress,
		p:   small{regs: wideRegs, block: 1, body: "mov.b128 %w0, 0; st.global.b128 [%in0+8], %w0;"},
		fix: map[string]string{"+8": "+16"},
	},
	{
		name: "exchange of 128 bits misaligned", class: bench.MisalignedAddress,
		p:   small{target: "sm_90", regs: wideRegs, block: 1, body: "mov.b128 %w0, 0; atom.global.exch.b128 %w0, [%in0+8], %w0;"},
		fix: map[string]string{"+8": "+16"},
	},
	{
		name: "race for 128 bits of shared memory", class: bench.SharedRace,
		p:   small{decls: sharedDecl, dynamic: 128, regs: wideRegs, block: 64, body: "mov.b128 %w0, 0; setp.eq.u32 %p, %t, 0; @%p st.shared.b128 [sm], %w0; setp.eq.u32 %p, %t, 32; @%p ld.shared.b32 %n0, [sm+12];"},
		fix: map[string]string{"setp.eq.u32 %p, %t, 32": "bar.sync 0; setp.eq.u32 %p, %t, 32"},
	},
	{
		name: "high half never written", class: bench.UninitialisedRegister,
		p:   small{regs: wideRegs, block: 1, body: "/*write*/ mov.b128 {%a0, %a1}, %w0; st.global.b64 [%in0], %a1;"},
		fix: map[string]string{"/*write*/": "mov.b128 %w0, 1;"},
	},
	{
		name: "exchange of 128 bits, the high half never written", class: bench.UninitialisedSharedRead,
		p:   small{target: "sm_90", decls: sharedDecl, dynamic: 128, regs: wideRegs, block: 1, body: "mov.b64 %a0, 0; st.shared.b64 [sm], %a0; /*write*/ mov.b128 %w0, 0; atom.shared.exch.b128 %w0, [sm], %w0; mov.b128 {%a0, %a1}, %w0; st.global.b64 [%in1], %a1;"},
		fix: map[string]string{"/*write*/": "st.shared.b64 [sm+8], %a0;"},
	},
}

// TestVectorMoves: every element is read before the first is written.
func TestVectorMoves(t *testing.T) {
	p := small{
		regs: ".reg .v4 .u32 %v, %w; .reg .u32 %a, %b, %c; .reg .b64 %ad; .reg .b32 %lo, %hi;",
		body: `mov.v4.u32 %v, %tid; mov.v4.u32 {%v.w, _, %a, _}, %ntid; mov.v4.u32 %w, %v;
mov.u32 %b, 1; mov.u32 %c, 2; mov.v2.u32 {%b, %c}, {%c, %b}; mov.b64 {%lo, _}, -2; mov.b64 {_, %hi}, 0x500000003;
mad.wide.u32 %ad, %t, 32, %in0; st.global.v4.u32 [%ad], %w; st.global.v4.u32 [%ad+16], {%b, %c, %lo, %hi};`,
		block: 3,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i := range uint32(3) {
			require.Equal(t, []uint32{i, 0, 0, 3, 2, 1, 0xfffffffe, 5}, toWords(out[0])[8*i:8*i+8])
		}
	}, make([]byte, 96))
}
