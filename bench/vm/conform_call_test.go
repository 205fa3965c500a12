package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// TestCallsWithRegisters: arguments and results that are registers and
// constants, a guarded call, and a call in a function called.
func TestCallsWithRegisters(t *testing.T) {
	p := small{
		decls: `
.func (.reg .u32 r, .reg .u64 w) both(.reg .u32 a, .reg .u64 b, .reg .u16 c) {
 .reg .u32 x; cvt.u32.u16 x, c; mad.lo.u32 r, a, 3, x; cvt.u64.u32 w, a; add.u64 w, w, b; ret; }
.func (.reg .u32 r) outer(.reg .u32 a) {
 .reg .u64 w; .reg .u16 h; .reg .pred p;
 mov.u16 h, 7; setp.lt.u32 p, a, 5; mov.u32 r, 1000;
 @p call (r, w), both, (a, 100, h);
 ret; }`,
		regs: ".reg .b64 %ad, %w; .reg .u32 %r; .reg .u16 %h;",
		body: `cvt.u16.u32 %h, %t;
call (%r, %w), both, (%t, 5000000000, %h);
mad.wide.u32 %ad, %t, 16, %in0; st.global.u32 [%ad], %r; st.global.u64 [%ad+8], %w;
call (%r), outer, (%t); st.global.u32 [%ad+4], %r;`,
		block: 32,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got, wide := toWords(out[0]), toLongs(out[0])
		for i := range uint32(32) {
			require.Equal(t, 4*i, got[4*i])
			require.Equal(t, uint64(i)+5000000000, wide[2*i+1])
			want := uint32(1000)
			if i < 5 {
				want = 3*i + 7
			}
			require.Equal(t, want, got[4*i+1], "thread %d", i)
		}
	}, make([]byte, 512))
}

// TestAlloca: each lane takes as much of its stack as it likes, calls a function
// that takes more, and gives it back.
func TestAlloca(t *testing.T) {
	p := small{
		decls: `
.func (.param .b32 r) sum(.param .b64 p, .param .b32 n) {
 .reg .b64 %q, %p; .reg .b32 %n, %i, %s, %v; .reg .pred %c;
 ld.param.b64 %p, [p]; ld.param.b32 %n, [n];
 alloca.u64 %q, 64; st.local.u32 [%q], 1; st.local.u32 [%q+60], 2;
 mov.u32 %i, 0; mov.u32 %s, 0;
L: ld.local.u32 %v, [%p]; add.u32 %s, %s, %v; add.u64 %p, %p, 4; add.u32 %i, %i, 1;
 setp.lt.u32 %c, %i, %n; @%c bra L;
 st.param.b32 [r], %s; ret; }`,
		regs: ".reg .b64 %ad, %sp, %p, %q, %n; .reg .b32 %i, %k, %s; .reg .pred %c;",
		body: `add.u32 %k, %t, 1; mul.wide.u32 %n, %k, 4;
stacksave.u64 %sp;
alloca.u64 %p, %n, 32;
and.b64 %q, %p, 31; setp.ne.u64 %c, %q, 0; @%c trap;
mov.u32 %i, 0; mov.u64 %q, %p;
FILL: add.u32 %s, %i, %t; st.local.u32 [%q], %s; add.u64 %q, %q, 4; add.u32 %i, %i, 1; setp.lt.u32 %c, %i, %k; @%c bra FILL;
{ .param .b64 a; .param .b32 b; .param .b32 y; st.param.b64 [a], %p; st.param.b32 [b], %k; call (y), sum, (a, b); ld.param.b32 %s, [y]; }
stackrestore.u64 %sp; stacksave.u64 %q; setp.ne.u64 %c, %q, %sp; @%c trap;
mad.wide.u32 %ad, %t, 4, %in0; st.global.u32 [%ad], %s;`,
		block: 64,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		for i, got := range toWords(out[0]) {
			n := i + 1
			require.EqualValues(t, n*i+n*(n-1)/2, got, "thread %d", i)
		}
	}, make([]byte, 256))

	for name, c := range map[string]struct {
		body string
		want bench.FaultClass
	}{
		"past the end":    {"alloca.u64 %p, 16; st.local.u32 [%p+16], 1;", bench.LocalOutOfBounds},
		"after a restore": {"stacksave.u64 %q; alloca.u64 %p, 16; stackrestore.u64 %q; st.local.u32 [%p], 1;", bench.LocalOutOfBounds},
		"too much":        {"alloca.u64 %p, 100000000;", bench.LocalOutOfBounds},
		"a wild restore":  {"mov.u64 %p, 12345; stackrestore.u64 %p;", bench.LocalOutOfBounds},
		"never written":   {"alloca.u64 %p, 16; ld.local.u32 %i, [%p]; st.global.u32 [%in0], %i;", bench.UninitialisedRegister},
	} {
		p.body = c.body
		p.block = 1
		_, rep := p.run(t, make([]byte, 256))
		require.Len(t, rep.Faults, 1, name)
		require.Equal(t, c.want, rep.Faults[0].Class, name)
	}
}

// TestCallsWith128Bits: arguments and results of 128 bits, as registers and in
// memory, straight and through a table of functions.
func TestCallsWith128Bits(t *testing.T) {
	p := small{
		target: "sm_90",
		decls: `
.func (.param .b128 r) swap(.param .b128 a) {
 .reg .b128 %w; .reg .b64 %l, %h;
 ld.param.b128 %w, [a]; mov.b128 {%l, %h}, %w; mov.b128 %w, {%h, %l}; st.param.b128 [r], %w; ret; }
.func (.reg .b128 r) twice(.reg .b128 a, .reg .b32 n) {
 .reg .b64 %l, %h, %n; cvt.u64.u32 %n, n;
 mov.b128 {%l, %h}, a; add.cc.u64 %l, %l, %n; addc.u64 %h, %h, 0; mov.b128 r, {%l, %h}; ret; }
.global .u64 table[1] = {swap};`,
		regs: ".reg .b64 %ad, %l, %h, %f; .reg .b128 %w;",
		body: `mul.wide.u32 %ad, %t, 32; add.u64 %ad, %ad, %in0;
mov.u64 %l, -1; cvt.u64.u32 %h, %t; mov.b128 %w, {%l, %h};
{ .param .b128 a, r; st.param.b128 [a], %w; call (r), swap, (a); ld.param.b128 %w, [r]; }
st.global.b128 [%ad], %w;
ld.global.u64 %f, [table];
LIKE: .callprototype (.param .b128 _) _ (.param .b128 _);
{ .param .b128 a, r; st.param.b128 [a], %w; call (r), %f, (a), LIKE; ld.param.b128 %w, [r]; }

call (%w), twice, (%w, 3);
st.global.b128 [%ad+16], %w;`,
		block: 32,
	}
	p.everywhere(t, func(out [][]byte, rep *bench.Report) {
		require.Empty(t, rep.Faults)
		got := toLongs(out[0])
		for i := range uint64(32) {
			require.Equal(t, []uint64{i, 1<<64 - 1, 2, i + 1}, got[4*i:4*i+4], "thread %d", i)
		}
	}, make([]byte, 32*32))
}
