package ptx

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckCorpus(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			require.NoError(t, Resolve(m))
			require.NoError(t, Check(m))
			for _, d := range m.Decls {
				if f, ok := d.(*Function); ok {
					for _, in := range f.Code {
						require.NotNil(t, in.Spec)
					}
				}
			}
		})
	}
}

// checkError is what Load says about a body in a kernel for sm_80, PTX 8.0.
func checkError(body string) string {
	src := kernel(".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<4>;\n" + body)
	_, err := Load("t.ptx", []byte(src))
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCheckTakes(t *testing.T) {
	for _, body := range []string{
		"@!%p1 add.sat.s32 %r1, %r2, -7;",
		"setp.lt.and.f32 %p1|%p2, %f1, 0f3F800000, !%p3;",
		"ld.global.gpu.relaxed.v2.f32 {%f1, _}, [%rd1+8];",
		"mov.b64 {%r1, _}, %rd1;",
		"mov.b32 %r1, {%h1, %h2};",
		"mov.u32 %r1, %ctaid.z;",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};",
		"L: bra.uni L;",
		"cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;",
		"atom.global.gpu.acq_rel.add.u32 _, [%rd1], 1;",
		"shfl.sync.bfly.b32 %r1|%p1, %f2, 1, 31, -1;",
	} {
		require.Empty(t, checkError(body), body)
	}
}

func TestCheckErrors(t *testing.T) {
	for body, want := range map[string]string{
		"adds.s32 %r1, %r2, %r3;": "instruction adds: PTX has none of this name; add is near",
		"frobnicate;":             "instruction frobnicate: PTX has none of this name",
		"add.s33 %r1, %r2, %r3;":  "add.s33: no modifier .s33 (.s32 is near); want add{.u16,.u32,.u64,.s16,.s32,.s64} or add.sat.s32, or ",
		"mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};": "no modifier .m16n8k17 (.m16n8k16 is near); want mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
		"add.sat.u64 %r1, %r2, %r3;":                        "add.sat.u64: these modifiers do not go together; want add",
		"add.s32 %r1, %r2;":                                 "add.s32: 2 operands: want a register or number after them",
		"add.s32 %r1, %r2, %r3, %r4;":                       "add.s32: operand 4: want 3 operands",
		"add.s32 %r1, %rd2, %r3;":                           "7:14: add.s32: operand 2 is %rd2 (.b64): want a .s32 register or number",
		"add.f32 %f1, %f2, 1;":                              "add.f32: operand 3 is 1: want a .f32 register or number",
		"add.s32 %r1, %tid.x, 1;":                           "add.s32: operand 2 is %tid.x (special register): want a .s32 register or number",
		"@%r1 ret;":                                         "7:2: guard %r1: want a predicate register",
		"ld.global.v4.b32 {%r1, %r2}, [%rd1];":              "ld.global.v4.b32: operand 1 is 2 registers, %r1 of .b32 first: want 4 .b32 registers in braces",
		"ld.global.b32 %r1, [%r2];":                         "ld.global.b32: base %r2 has 32 bits; want a 64-bit register, or a space such as .shared",
		"ld.global.b32 %r1, %rd1;":                          "ld.global.b32: operand 2 is %rd1 (.b64): want an address in brackets",
		"add.f16x2 %r1, %r2, %r3; min.u16x2 %r1, %r2, %r3;": "min.u16x2 needs PTX 8.0 and sm_90 or newer: the module is PTX 8.0 for sm_80",
		"fence.acq_rel.cluster;":                            "fence.acq_rel.cluster needs PTX 7.8 and sm_90 or newer for .cluster: the module is PTX 8.0 for sm_80",
		"wgmma.fence.sync.aligned;":                         "wgmma.fence.sync.aligned needs PTX 8.0 and sm_90a: the module is PTX 8.0 for sm_80",
		"tcgen05.wait::ld.sync.aligned;":                    "needs PTX 8.6 and sm_100a, sm_110a; or PTX 8.8 and sm_100f, sm_110f: the module is",
		"shfl.idx.b32 %r1, %r2, 0, 31;":                     "shfl.idx.b32 needs something older than PTX 6.4 and sm_70 or newer: the module is",
		"add.s32 %r1, %r2.b0, 1;":                           "add.s32: operand 2 is %r2.b0 (.b32): want a .s32 register or number",
		"add.s32 %r1, -%r2, 1;":                             "add.s32: operand 2 is -%r2 (.b32): want a .s32 register or number",
		"add.s32 %r1.x, %r2, 1;":                            "add.s32: operand 1 is %r1.x (.b32): want a .s32 register",
		"mov.u32 %r1, %clusterid.x;":                        "%clusterid.x needs PTX 7.8 and sm_90 or newer: the module is PTX 8.0 for sm_80",
		"bra %r1;":                                          "bra: operand 1 is %r1 (.b32): want a label",
		".shared .b32 s[8]; red.shared.add.u32 s[4], 1;":    "red.shared.add.u32: an element of s by its index is for ld and st; want [s+OFFSET] or a register's address",
		"cp.async.ca.shared.global [%r1], [%rd1], 5;":       "operand 3 is 5: want one of the numbers 4, 8, 16",
		"cvta.to.shared.u32 %r1, %r2;":                      "cvta.to.shared.u32: an address has 64 bits in this module; want .u64",
		"bfe.u32 %r1, %r2, 256, 1;":                         "bfe.u32: operand 3 is 256: want a .u32 register or a number from 0 to 255",
		"bfi.b32 %r1, %r2, %r3, 1, -1;":                     "bfi.b32: operand 5 is -1: want a .u32 register or a number from 0 to 255",
		"bar.arrive 1, 0;":                                  "bar.arrive: operand 2 is 0: want a .u32 register or one of the numbers 32, 64,",
		".reg .b128 q;":                                     "",
		"call (%r1), t;":                                    "t: not declared",
	} {
		got := checkError(body)
		if want == "" {
			require.Contains(t, got, ".b128 needs PTX 8.3 and sm_70 or newer", body)
			continue
		}
		require.Contains(t, got, want, body)
	}
}

func TestCheckHeader(t *testing.T) {
	for head, want := range map[string]string{
		".version 10.0\n.target sm_90\n":    "PTX version 10.0: want 1.0 to 9.x",
		".version 9.0\n.target sm_91\n":     "target sm_91: no such target",
		".version 9.0\n.target sm_80a\n":    "target sm_80a: no such target",
		".version 9.0\n.target sm_x\n":      `target "sm_x": want sm_ and a number such as sm_90a`,
		".version 9.0\n.target debug\n":     "targets debug: want one such as sm_90a",
		".version 8.0\n.target sm_100a\n":   "target sm_100a needs PTX 8.6: the module says 8.0",
		".version 8.7\n.target sm_100f\n":   "target sm_100f needs PTX 8.8: the module says 8.7",
		".version 8.7\n.target sm_120, x\n": "",
	} {
		_, err := Load("t.ptx", []byte(head+".address_size 64\n"))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, "t.ptx: "+want)
	}
}

func TestCheckCalls(t *testing.T) {
	src := head + `.func (.reg .b32 r) f(.reg .b32 a) { ret; }
.visible .entry k() { .reg .b32 %r<3>; call (%r1), f, (%r2); call f, (%r1); call k; }`
	_, err := Load("t.ptx", []byte(head+".entry k() .explicitcluster {}"))
	require.ErrorContains(t, err, "4:12: .explicitcluster needs PTX 7.8 and sm_90 or newer")
	_, err = Load("t.ptx", []byte(src))
	require.ErrorContains(t, err, "t.ptx:5:62: call of f with 0 results and 1 arguments: want 1 and 1")
	require.ErrorContains(t, err, "call of k: want a function, not a kernel")
}

// tcgen05 is a block's or a pair's throughout a kernel; copies may be of either.
func TestCheckTensorGroups(t *testing.T) {
	text := func(group, copies string) string {
		return `.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() { .reg .b32 %r<3>; .reg .b64 %rd; tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::` + copies + ` [%r1], [%rd, {%r2, %r2}], [%r1];
tcgen05.shift.cta_group::` + group + `.down [%r1]; }`
	}
	_, err := Load("t.ptx", []byte(text("1", "2")))
	require.NoError(t, err)
	_, err = Load("t.ptx", []byte(text("2", "1")))
	require.ErrorContains(t, err, "t.ptx:6:1: tcgen05.shift.cta_group::2.down: others in k have .cta_group::1: want one of them throughout")
}

func FuzzLoad(f *testing.F) {
	for _, src := range corpus(f) {
		if len(src) < 20_000 {
			f.Add(string(src))
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Load("f", []byte(src))
		if err != nil {
			if err.Error() == "" {
				t.Fatal("error without words")
			}
			return
		}
		if again, err := Load("f", []byte(m.String())); err != nil {
			t.Fatalf("the text of a checked module is refused: %v\n%s", err, again)
		}
	})
}
