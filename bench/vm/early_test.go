package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestEarlyLaunches: what an early launch does before its wait races with what the launches
// before have written, and with what they read where it writes.
func TestEarlyLaunches(t *testing.T) {
	const (
		wait = "griddepcontrol.wait;\n"
		read = "ld.global.u32 %v, [%in0]; st.global.u32 [%in2], %v;\n"
		free = "ld.global.u32 %v, [%in2]; st.global.u32 [%in3], %v;\n" // of no other launch
		over = "st.global.u32 [%in1], %t;\n"
		peek = "ld.global.u32 %v, [%in0];\n"
		bulk = "cp.async.bulk.prefetch.L2.global [%in0], 16;\n"
	)
	for name, test := range map[string]struct {
		second, third string
		late          bool // the launches are not early
		faults        int
	}{
		"waits first":                       {second: wait + read + over},
		"reads first":                       {second: peek + wait, faults: 1},
		"writes what was read":              {second: over + wait, faults: 1},
		"never waits":                       {second: read, faults: 1},
		"not early":                         {second: read + over, late: true},
		"begins with what is its own":       {second: free + wait + read},
		"prefetches":                        {second: bulk + wait + read},
		"reads what the first of three has": {second: wait + free, third: peek + wait, faults: 1},
		"waits as the third":                {second: wait + free, third: wait + read},
	} {
		t.Run(name, func(t *testing.T) {
			first := "ld.global.u32 %v, [%in1]; st.global.u32 [%in0], %t; griddepcontrol.launch_dependents;"
			dev, err := vm.New(vm.Options{})
			require.NoError(t, err)
			defer dev.Close()
			var args []bench.Arg
			for range 4 {
				b, err := dev.Alloc(16, 256)
				require.NoError(t, err)
				require.NoError(t, dev.Write(b, 0, make([]byte, 16)))
				args = append(args, bench.Pointer(b))
			}
			var faults []bench.Fault
			for i, body := range []string{first, test.second, test.third} {
				if body == "" {
					continue
				}
				p := small{target: "sm_90", regs: ".reg .b32 %v;", body: body}
				m, err := dev.Load(t.Context(), "early.ptx", []byte(p.text(len(args))))
				require.NoError(t, err)
				r, err := dev.Launch(t.Context(), m, "k", bench.Launch{Grid: [3]uint32{1}, Block: [3]uint32{1}, Args: args, Early: i > 0 && !test.late})
				require.NoError(t, err)
				faults = append(faults, r.Faults...)
			}
			require.Len(t, faults, test.faults)
			for _, f := range faults {
				require.Equal(t, bench.GlobalRace, f.Class)
				require.Contains(t, f.Message, "want griddepcontrol.wait first")
				require.Contains(t, f.Site.PTX, ".global")
			}
		})
	}
}
