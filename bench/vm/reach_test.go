package vm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestRefusedWhereReached: what the virtual machine does not execute is refused
// with its name and line when a kernel that reaches it is launched, and does
// not keep the module's other kernels from running.
func TestRefusedWhereReached(t *testing.T) {
	const text = `.version 8.0
.target sm_80
.address_size 64
.global .texref picture;
.extern .global .b32 elsewhere;
.extern .func malloc (.param .b64 n);
.func sample () { .reg .f32 %f<5>; .reg .s32 %i;
mov.s32 %i, 0;
tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%i}]; ret; }
.entry good (.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 7; ret; }
.entry texture () { call sample, (); ret; }
.entry outside () { .reg .b32 %r;
ld.global.u32 %r, [elsewhere]; ret; }
.entry heap () { .param .b64 n; st.param.b64 [n], 8;
call malloc, (n); ret; }
`
	x := newRunner(t, vm.Options{}, "m.ptx", []byte(text))
	o := out[uint32](x, 1)
	x.launch("good", threads(1), threads(1), 0, o)
	require.Equal(t, []uint32{7}, o.get())
	for kernel, want := range map[string]string{
		"texture": "m.ptx:9:1: tex.1d.v4.f32.s32",
		"outside": "m.ptx:13:1: ",
		"heap":    "m.ptx:15:1: call: function malloc is not defined",
	} {
		_, err := x.dev.Launch(t.Context(), x.mod, kernel, bench.Launch{Grid: threads(1), Block: threads(1)})
		require.ErrorContains(t, err, want)
	}
}

// TestTexturesRefused: textures and surfaces are refused by name, each where it
// stands.
func TestTexturesRefused(t *testing.T) {
	for _, text := range []string{
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%h, {%f0, %f0}];",
		"tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%h, {%f0, %f0}];",
		"txq.width.b32 %r1, [%h];",
		"suld.b.2d.b32.trap %r1, [%h, {%r0, %r0}];",
		"sust.b.2d.b32.trap [%h, {%r0, %r0}], %r1;",
		"sured.b.add.2d.u32.trap [%h, {%r0, %r0}], %r1;",
		"suq.width.b32 %r1, [%h];",
		"istypep.texref %p, %h;",
	} {
		x := newRunner(t, vm.Options{}, "m.ptx", []byte(`.version 8.0
.target sm_80
.address_size 64
.entry k () { .reg .b32 %r<2>; .reg .f32 %f<5>; .reg .b64 %h; .reg .pred %p; mov.u64 %h, 0; mov.u32 %r0, 0; mov.u32 %r1, 0; mov.f32 %f0, 0f00000000;
`+text+" ret; }"))
		_, err := x.dev.Launch(t.Context(), x.mod, "k", bench.Launch{Grid: threads(1), Block: threads(1)})
		name, _, _ := strings.Cut(text, " ")
		require.ErrorContains(t, err, "m.ptx:5:1: "+name+": ")
	}
}

// TestAddressesInInitialisers: bytes of addresses, tables of functions, and
// addresses with offsets.
func TestAddressesInInitialisers(t *testing.T) {
	p := small{
		decls: `.func (.param .b32 r) seven () { st.param.b32 [r], 7; ret; }
.func (.param .b32 r) eight () { st.param.b32 [r], 8; ret; }
.global .b32 data[4] = {10, 20, 30, 40};
.global .u64 at = generic(data)+8;
.global .u8 low[8] = {0xFF(data), 0xFF00(data), 0xFF0000(data), 0xFF000000(data), 0xFF00000000(data), 0xFF0000000000(data), 0xFF000000000000(data), 0xFF00000000000000(data)};
.global .u64 table[2] = {seven, eight};`,
		regs: ".reg .b64 %a, %f; .reg .b32 %x, %y, %z, %w, %i;",
		body: `ld.global.u64 %a, [at]; ld.global.u32 %x, [%a];
mov.u64 %f, low; mov.u64 %a, 0; mov.u32 %i, 0;
.reg .pred %p; .reg .b64 %b;
L: ld.global.u8 %b, [%f]; mul.lo.u32 %y, %i, 8; shl.b64 %b, %b, %y; or.b64 %a, %a, %b; add.u64 %f, %f, 1;
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 8; @%p bra L;
ld.global.u32 %y, [%a+12];
P: .callprototype (.param .b32 _) _ ();
mov.u64 %a, table; mad.wide.u32 %a, %t, 8, %a; ld.global.u64 %f, [%a];
{ .param .b32 r; call (r), %f, (), P; ld.param.b32 %z, [r]; }
mad.wide.u32 %a, %t, 12, %in0; st.global.u32 [%a], %x; st.global.u32 [%a+4], %y; st.global.u32 [%a+8], %z;`,
		block: 2,
	}
	p.everywhere(t, func(out [][]byte, r *bench.Report) {
		require.Empty(t, r.Faults)
		require.Equal(t, []uint32{30, 40, 7, 30, 40, 8}, toWords(out[0]))
	}, make([]byte, 24))
}
