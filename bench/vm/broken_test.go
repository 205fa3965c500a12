package vm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// TestPanics: a bug of the virtual machine becomes one error that says where,
// whether it shows as a module is read or on any of the workers.
func TestPanics(t *testing.T) {
	saved := decoders["brkpt"]
	defer func() { decoders["brkpt"] = saved }()
	const text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %x;\nmov.u32 %x, 1;\nbrkpt;\nret;\n}\n"
	var broken []int
	faulty := func(*warp, *inst) { _ = broken[7] }
	for _, c := range []struct {
		name, where string
		decode      func(d *decoder)
	}{
		{"decoding", "kernel k of x.ptx", func(*decoder) { _ = broken[7] }},
		{"a plain instruction", "kernel k of x.ptx, block", func(d *decoder) {
			in := d.new(kindMasked)
			in.fn[modeFull] = faulty
			d.emit(in)
		}},
		{"a control instruction", "line 8", func(d *decoder) { d.control(faulty, flowNext) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			decoders["brkpt"] = c.decode
			dev, err := New(Options{Workers: 4})
			require.NoError(t, err)
			ctx := context.Background()
			m, err := dev.Load(ctx, "x.ptx", []byte(text))
			require.NoError(t, err)
			report, err := dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{100}, Block: [3]uint32{64}})
			require.Nil(t, report)
			var bug *bench.InternalError
			require.ErrorAs(t, err, &bug)
			require.ErrorContains(t, err, "bug in kgen: ")
			require.Contains(t, bug.Where, c.where)
			require.ErrorContains(t, bug.Cause, "index out of range")
			require.NotEmpty(t, bug.Stack)
		})
	}
}
