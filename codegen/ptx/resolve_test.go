package ptx

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolveCorpus(t *testing.T) {
	for name, src := range corpus(t) {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			m, err := Parse(name, src)
			require.NoError(t, err)
			before := m.String()
			require.NoError(t, Resolve(m))
			require.Equal(t, before, m.String())
		})
	}
}

const head = ".version 8.0\n.target sm_80\n.address_size 64\n"

// kernel wraps a body in a kernel with a parameter p.
func kernel(body string) string {
	return head + ".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n"
}

func resolved(t *testing.T, src string) *Function {
	t.Helper()
	m, err := Parse("t.ptx", []byte(src))
	require.NoError(t, err)
	require.NoError(t, Resolve(m))
	for _, d := range m.Decls {
		if f, ok := d.(*Function); ok && f.Kernel {
			return f
		}
	}
	t.Fatal("no kernel")
	return nil
}

func TestResolveScopes(t *testing.T) {
	f := resolved(t, kernel(`
	.reg .b32 %r<3>;
	.reg .v2 .f32 v;
	mov.b32 %r1, %tid.y;
	{
		.reg .b32 %r<2>;
		mov.b32 %r1, 5;
		bra L;
	L:
	}
	mov.b32 %r1, %r2;
	mov.f32 v.y, 0f00000000;
	ld.global.v2.f32 v, [p+8];
	L: ret;`))
	slot := func(pc, operand int) int32 { return f.Code[pc].Operands[operand].Slot() }
	require.Equal(t, TidY, Special(slot(0, 1)))
	require.NotEqual(t, slot(0, 0), slot(1, 0), "the inner %r1 is another register")
	require.Equal(t, slot(0, 0), slot(3, 0))
	require.EqualValues(t, 3, slot(2, 0), "the inner L")
	whole := f.Code[5].Operands[0]
	require.Equal(t, OpVector, whole.Kind)
	require.Equal(t, slot(4, 0), whole.Elems()[1].Slot())
	require.Equal(t, "{v.x, v.y}", whole.String())
	require.Equal(t, "v.y", f.Registers[whole.Elems()[1].Slot()].Name)
	require.Equal(t, OpSymbol, f.Code[5].Operands[1].Elems()[0].Kind)
	require.EqualValues(t, 8, f.Code[5].Operands[1].Elems()[0].Offset())
}

func TestResolveErrors(t *testing.T) {
	for body, want := range map[string]string{
		".reg .b32 %r<3>;\nmov.b32 %r3, 1;":  "t.ptx:7:9: register %r3: want %r0 to %r2",
		".reg .b32 %r<3>;\nmov.b32 %r01, 1;": "t.ptx:7:9: %r01: not declared",
		"bra away;":                          "t.ptx:6:5: away: not declared",
		"{ L: ret; }\nbra L;":                "t.ptx:7:5: L: not declared",
		".reg .b32 a, a;":                    "t.ptx:6:14: a: declared before at 6:11",
		".reg .b32 a; mov.b32 a, %tidy.x;":   "t.ptx:6:25: %tidy: not declared",
		".reg .v2 .b32 a; mov.b32 a.z, 1;":   "t.ptx:6:26: a.z: the register has 2 components",
		".shared .b32 s[4]; ld.b32 q[0], 3;": "t.ptx:6:27: q: want a variable before an index",
		"L: ret; L: ret;":                    "t.ptx:6:9: L: declared before at 6:1",
	} {
		m, err := Parse("t.ptx", []byte(kernel(body)))
		require.NoError(t, err, body)
		require.EqualError(t, Resolve(m), want, body)
	}
}
