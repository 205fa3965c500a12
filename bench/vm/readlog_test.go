package vm_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// TestListedReads: reads of shared memory that are listed for later, as whole warps'
// are, end in the reports of those that are compared at once, as reads by generic
// addresses are.
func TestListedReads(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	racy := 0
	for range 400 {
		listed, atOnce := readsAndOrder(r)
		opt := vm.Options{Schedule: []vm.Schedule{vm.InOrder, vm.Shuffle}[r.IntN(2)], Seed: r.Uint64N(100)}
		want, got := faultsOf(t, atOnce, opt), faultsOf(t, listed, opt)
		require.Equal(t, want, got, "%s", listed)
		if len(got) > 0 {
			racy++
		}
	}
	require.Greater(t, racy, 50)
	require.Less(t, racy, 390)
}

// readsAndOrder draws a program of three warps that read, write and order words of
// shared memory in five rounds, in two spellings of its reads. What a round does first
// is not listed: the distances between lanes are not known yet.
func readsAndOrder(r *rand.Rand) (listed, atOnce string) {
	var a, b strings.Builder
	both := func(format string, args ...any) {
		fmt.Fprintf(&a, format+"\n", args...)
		fmt.Fprintf(&b, format+"\n", args...)
	}
	both("st.shared.u32 [%%own], %%t; st.shared.u32 [%%own+512], %%t; st.shared.u32 [%%own+1024], %%t; mov.u32 %%i, 0; bar.sync 0;\nL:" +
		"shr.u32 %%varied, %%i, 1; mul.lo.u32 %%varied, %%varied, %%t; and.b32 %%varied, %%varied, 63; mad.lo.u32 %%varied, %%varied, 4, %%first; cvt.u64.u32 %%gvaried, %%varied; cvta.shared.u64 %%gvaried, %%gvaried;")
	where := []string{"own", "own", "warp", "first", "twice", "varied", "varied"}
	for i := range 4 + r.IntN(14) {
		at := where[r.IntN(len(where))]
		off := 512*r.IntN(2) + 4*r.IntN(2)*r.IntN(40)
		switch r.IntN(12) {
		default:
			fmt.Fprintf(&a, "ld.shared.u32 %%x, [%%%s+%d];\n", at, off)
			fmt.Fprintf(&b, "ld.u32 %%x, [%%g%s+%d];\n", at, off)
		case 0, 1:
			both("bar.sync 0;")
		case 2:
			both("st.shared.u32 [%%own+%d], %d;", off, i)
		case 3:
			both("@%%lower st.shared.u32 [%%own+%d], %d;", off, i)
		case 4:
			both("bar.warp.sync -1;")
		case 5:
			both("@%%p%d bar.sync %d, 64;", i&1, 1+i&1)
		case 6:
			both("@%%lead red.release.cta.shared.add.u32 [%%first+1600], 1;")
		case 7:
			both("ld.acquire.cta.shared.u32 %%y, [%%first+1600]; setp.eq.u32 %%q, %%y, 77; @%%q trap;")
		case 8:
			both("@%%lead st.shared.u32 [%%%s+%d], %d;", at, off, i)
		}
	}
	if r.IntN(3) > 0 {
		both("bar.sync 0;")
	}
	both("add.u32 %%i, %%i, 1; setp.lt.u32 %%q, %%i, 5; @%%q bra L;")
	program := func(body string) string {
		return small{
			decls: ".shared .align 16 .b8 sm[2048];",
			regs:  ".reg .b32 %x, %y, %i, %own, %warp, %first, %twice, %varied, %w; .reg .b64 %gown, %gwarp, %gfirst, %gtwice, %gvaried; .reg .pred %p0, %p1, %q, %lead, %lower;",
			body: "mov.u32 %first, sm; mad.lo.u32 %own, %t, 4, %first; shr.u32 %w, %t, 5; mad.lo.u32 %warp, %w, 128, %first; and.b32 %twice, %t, 15; mad.lo.u32 %twice, %twice, 4, %first;" +
				"setp.lt.u32 %p0, %t, 64; setp.ge.u32 %p1, %t, 32; and.b32 %x, %t, 31; setp.eq.u32 %lead, %x, 0; setp.lt.u32 %lower, %x, 16;" +
				"cvt.u64.u32 %gown, %own; cvta.shared.u64 %gown, %gown; cvt.u64.u32 %gwarp, %warp; cvta.shared.u64 %gwarp, %gwarp; cvt.u64.u32 %gfirst, %first; cvta.shared.u64 %gfirst, %gfirst; cvt.u64.u32 %gtwice, %twice; cvta.shared.u64 %gtwice, %gtwice;" +
				"@%p0 bra A; A: @%lead red.shared.add.u32 [%first+1600], 0; bar.sync 0;\n" + body,
		}.text(0)
	}
	return program(a.String()), program(b.String())
}

// faultsOf runs a program of 96 threads with all races reported.
func faultsOf(t *testing.T, src string, opt vm.Options) []bench.Fault {
	t.Helper()
	var err error
	opt.Checks, err = vm.ParseChecks("shared-race,async-copy-race")
	require.NoError(t, err)
	dev, err := vm.New(opt)
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(t.Context(), "small.ptx", []byte(src))
	require.NoError(t, err, "%s", src)
	report, err := dev.Launch(t.Context(), m, "k", bench.Launch{Grid: [3]uint32{1}, Block: [3]uint32{96}})
	require.NoError(t, err, "%s", src)
	for i := range report.Faults {
		f := &report.Faults[i]
		f.PTX, f.Count = "", 0 // lanes that read the same count twice at most where they are listed
		if f.Other != nil {
			f.Other.PTX = ""
		}
	}
	return report.Faults
}

// TestListedReadsThatMatter: what a listed read meets, and what its reader hears of
// later. All are done twice; the misdeed comes in the second round, when how far
// apart the lanes are is known.
func TestListedReadsThatMatter(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       bench.FaultClass
	}{
		{"a copy in flight over a barrier",
			"@%second cp.async.ca.shared.global [%own], [%in0], 4; bar.sync 0; ld.shared.u32 %x, [%own]; bar.sync 0; cp.async.wait_all;", bench.AsyncCopyRace},
		{"a copy that was waited for",
			"@%second cp.async.ca.shared.global [%own], [%in0], 4; cp.async.wait_all; bar.sync 0; ld.shared.u32 %x, [%own];", ""},
		{"a read whose instruction reads otherwise since", `
add.u32 %y, %own, 384; add.u32 %w, %first, 1600; mov.u32 %told, 0;
AGAIN: ld.shared.u32 %x, [%y]; setp.eq.u32 %q, %told, 0; selp.u32 %y, %own, %w, %q; add.u32 %told, %told, 1; setp.lt.u32 %q, %told, 3; @%q bra AGAIN;
red.relaxed.cta.shared.add.u32 [%first+1604], 1; mul.lo.u32 %told, %i, 96;
TOLD: ld.relaxed.cta.shared.u32 %y, [%first+1604]; setp.lt.u32 %q, %y, %told; @%q bra TOLD;
setp.gt.u32 %q, %t, 32; and.pred %q, %q, %p1; and.pred %q, %q, %second; @%q st.shared.u32 [%own+-128], 1;`, bench.SharedRace},
		// The last warp knows of the second one's read, and that one of the first one's
		// only after it told.
		{"a reader that heard of another afterwards", `
@%p0 bra ZERO; @%p1 bra ONE;
W2: ld.acquire.cta.shared.u32 %y, [%first+1604]; setp.ne.u32 %q, %y, %told; @%q bra W2;
@%second st.shared.u32 [%own+-256], 1; bra MEET;
ONE: ld.shared.u32 %x, [%own+-128]; red.release.cta.shared.add.u32 [%first+1604], 1;
W1: ld.acquire.cta.shared.u32 %y, [%first+1600]; setp.ne.u32 %q, %y, %told; @%q bra W1; bra MEET;
ZERO: ld.shared.u32 %x, [%own]; red.release.cta.shared.add.u32 [%first+1600], 1;
MEET:`, bench.SharedRace},
		{"a reader that heard of another before it told", `
@%p0 bra ZERO; @%p1 bra ONE;
W2: ld.acquire.cta.shared.u32 %y, [%first+1604]; setp.ne.u32 %q, %y, %told; @%q bra W2;
@%second st.shared.u32 [%own+-256], 1; bra MEET;
ONE: ld.shared.u32 %x, [%own+-128];
W1: ld.acquire.cta.shared.u32 %y, [%first+1600]; setp.ne.u32 %q, %y, %told; @%q bra W1;
red.release.cta.shared.add.u32 [%first+1604], 1; bra MEET;
ZERO: ld.shared.u32 %x, [%own]; red.release.cta.shared.add.u32 [%first+1600], 1;
MEET:`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := small{
				decls: ".shared .align 16 .b8 sm[2048];",
				regs:  ".reg .b32 %x, %y, %i, %told, %own, %first, %w; .reg .pred %p0, %p1, %q, %second;",
				body: "mov.u32 %first, sm; mad.lo.u32 %own, %t, 4, %first; shr.u32 %w, %t, 5; setp.eq.u32 %p0, %w, 0; setp.eq.u32 %p1, %w, 1;" +
					"st.shared.u32 [%own], %t; st.shared.u32 [%own+1536], 0; mov.u32 %i, 0;\n" +
					"L: add.u32 %i, %i, 1; setp.eq.u32 %second, %i, 2; shl.b32 %told, %i, 5; bar.sync 0;\n" + c.body + "\nsetp.lt.u32 %q, %i, 2; @%q bra L;",
				block: 96,
			}
			_, report := p.run(t, make([]byte, 4))
			if c.want == "" {
				require.Empty(t, report.Faults)
				return
			}
			require.Len(t, report.Faults, 1)
			require.Equal(t, c.want, report.Faults[0].Class)
		})
	}
}
