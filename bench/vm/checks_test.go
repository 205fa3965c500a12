package vm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestChecks: a list of checks says what a program with three faults is told of.
func TestChecks(t *testing.T) {
	p := small{
		decls: sharedDecl, dynamic: 64, block: 2, regs: ".reg .b32 %v;",
		body: "st.shared.u32 [sm], 7;\nst.shared.u32 [sm+4], %t;\nld.global.u32 %v, [%in0+4096];",
	}
	const same, other, outside = "shared-race of one value", "shared-race", "global-out-of-bounds"
	for list, want := range map[string][]string{
		"":                                  {other, outside},
		"default":                           {other, outside},
		"all":                               {same, other, outside},
		"none":                              nil,
		"shared-race":                       {other},
		"global-out-of-bounds":              {outside},
		"shared-race,global-out-of-bounds":  {other, outside},
		"shared-race,same-value":            {same, other},
		"deadlock":                          nil,
		"+same-value":                       {same, other, outside},
		"-shared-race":                      {outside},
		"+same-value,-global-out-of-bounds": {same, other},
		"all,-shared-race":                  {outside},
		"all, -global-out-of-bounds":        {same, other},
		"default,-global-out-of-bounds":     {other},
		"none,+global-out-of-bounds":        {outside},
	} {
		var err error
		p.opt.Checks, err = vm.ParseChecks(list)
		require.NoError(t, err, list)
		_, report := p.run(t, make([]byte, 16))
		var got []string
		for _, f := range report.Faults {
			name := string(f.Class)
			if f.Class == bench.SharedRace && *f.Address%8 == 0 {
				name = same
			}
			got = append(got, name)
		}
		require.ElementsMatch(t, want, got, "%q", list)
	}
	for _, list := range []string{"shared_race", "+", "all,,none", "Default"} {
		_, err := vm.ParseChecks(list)
		require.ErrorContains(t, err, "want one of default, all, none, global-out-of-bounds", list)
	}
}
