package vm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
)

// remembered launches a kernel over words that all are written, and returns what it keeps
// of the blocks' accesses, in bytes, and what it reports.
func remembered(t *testing.T, body string, words, block uint32, set func(*launch)) (*launch, *bench.Report, []byte) {
	t.Helper()
	text := fmt.Sprintf(`.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 pc) {
	.reg .b32 %%t, %%i, %%j, %%n, %%x, %%y, %%z, %%total;
	.reg .b64 %%in, %%c, %%g, %%h;
	.reg .b16 %%s;
	.reg .pred %%p;
	ld.param.u64 %%in, [px];
	ld.param.u64 %%c, [pc];
	mov.u32 %%t, %%tid.x;
	mov.u32 %%i, %%ctaid.x;
	mov.u32 %%n, %%ntid.x;
	mad.lo.u32 %%i, %%i, %%n, %%t;
	mov.u32 %%total, %%nctaid.x;
	mov.u32 %%n, %d;
	%s
	ret;
}`, words, body)
	checks, err := ParseChecks("default")
	require.NoError(t, err)
	dev, err := New(Options{Workers: 2, Checks: checks})
	require.NoError(t, err)
	defer dev.Close()
	m, err := dev.Load(t.Context(), "k.ptx", []byte(text))
	require.NoError(t, err)
	var buffers [2]bench.Buffer
	for i, n := range []int64{4 * int64(words), 4096} {
		buffers[i], err = dev.Alloc(n, 256)
		require.NoError(t, err)
		require.NoError(t, dev.Write(buffers[i], 0, make([]byte, n)))
	}
	mod := dev.modules[m.ID]
	kern, err := mod.kernel(context.Background(), "k")
	require.NoError(t, err)
	l := &launch{dev: dev, mod: mod, kern: kern, prog: kern.prog, checks: dev.opt.Checks.effective(), maxSteps: 1 << 40, limits: limitsFor(dev.mem.used)}
	set(l)
	report, err := l.whole(t.Context(), bench.Launch{Grid: [3]uint32{words / block}, Block: [3]uint32{block}, Args: []bench.Arg{bench.Pointer(buffers[0]), bench.Pointer(buffers[1])}})
	require.NoError(t, err)
	out := make([]byte, 4*words)
	require.NoError(t, dev.Read(buffers[0], 0, out))
	return l, report, out
}

// A multiplication by an odd number scatters all words.
const (
	scattered = "mul.lo.u32 %j, %i, 2654435761; rem.u32 %j, %j, %n;\n"
	wordOf    = "mad.wide.u32 %g, %j, 4, %in;\n"
	meetAll   = `bar.sync 0; setp.ne.u32 %p, %t, 0; @%p bra DONE; fence.acq_rel.gpu; atom.global.add.u32 %x, [%c], 1;
WAIT: ld.relaxed.gpu.global.u32 %x, [%c]; setp.lt.u32 %p, %x, %total; @%p bra WAIT; fence.acq_rel.gpu;
DONE: bar.sync 0;
`
)

// Whatever the accesses, what is kept of them is at most twice the buffer.
func TestShadowStaysBelowTwiceTheBuffers(t *testing.T) {
	const words, block = 1 << 16, 64
	for name, body := range map[string]string{
		"in place":               "mov.u32 %j, %i;\n" + wordOf + "ld.global.u32 %x, [%g]; add.u32 %x, %x, 1; st.global.u32 [%g], %x;",
		"scattered in place":     scattered + wordOf + "ld.global.u32 %x, [%g]; add.u32 %x, %x, 1; st.global.u32 [%g], %x;",
		"gathered":               scattered + wordOf + "ld.global.u32 %x, [%g]; st.global.u32 [%c], 0;",
		"atomic":                 scattered + wordOf + "red.global.add.u32 [%g], 1;",
		"volatile":               scattered + wordOf + "st.volatile.global.u32 [%g], 1;",
		"written, then gathered": scattered + wordOf + "st.global.u32 [%g], %i;\n" + meetAll + "mad.lo.u32 %j, %i, 40503, 77; rem.u32 %j, %j, %n;\n" + wordOf + "ld.global.u32 %x, [%g];",
		"gathered, then counted": scattered + wordOf + "ld.global.u32 %x, [%g];\n" + meetAll + "mad.lo.u32 %j, %i, 40503, 77; rem.u32 %j, %j, %n;\n" + wordOf + "red.global.add.u32 [%g], 1;",
		"columns of halves": `mov.u32 %x, %ctaid.x; mad.lo.u32 %j, %t, 2048, %x; mad.wide.u32 %g, %j, 2, %in;
mov.u16 %s, 7; st.global.u16 [%g], %s;`,
		"scattered bytes": "mul.lo.u32 %j, %i, 2654435761; and.b32 %j, %j, 0x3ffff;\n" + "cvt.u64.u32 %g, %j; add.u64 %g, %g, %in; mov.u16 %s, 7; st.global.u8 [%g], %s;",
	} {
		t.Run(name, func(t *testing.T) {
			l, report, _ := remembered(t, body, words, block, func(l *launch) {
				l.limits.originals, l.limits.shadows = 4*words/pageLineSize, 4*words*7/5
			})
			if name != "gathered" {
				require.Empty(t, report.Faults)
			}
			kept := l.across.shadows.size()
			t.Log(float64(kept)/(4*words), float64(l.before.size())/(4*words))
			require.Less(t, kept, int64(4*words*3/2))
			most := l.limits.originals + 2*ahead*block + 2*arenaChunk
			require.LessOrEqual(t, l.before.size(), int64(4*words/16+most*(pageLineSize+24)))
		})
	}
}

// Few blocks that each write words all over the buffer have all of it kept as it was,
// until the last of them has had its turn: what is kept of accesses then has to do with
// less, whether these came first or the writes.
func TestOriginalsPressShadows(t *testing.T) {
	const (
		words, block = 1 << 16, 64
		threads      = 16 * block
		loop         = "NAME: mul.lo.u32 %j, %y, 2654435761; rem.u32 %j, %j, %n;\n" + wordOf + "BODY add.u32 %y, %y, 1024; setp.lt.u32 %p, %y, %n; @%p bra NAME;\n"
		read         = "ld.global.u32 %x, [%g];"
	)
	all := func(name, body string) string { return strings.NewReplacer("NAME", name, "BODY", body).Replace(loop) }
	for name, body := range map[string]string{
		"written":                all("ALL", "st.global.u32 [%g], %y;"),
		"updated":                all("ALL", read+"add.u32 %x, %x, 1; st.global.u32 [%g], %x;"),
		"gathered, then written": all("READ", read) + "mov.u32 %y, %i;\n" + all("ALL", "st.global.u32 [%g], %y;"),
	} {
		t.Run(name, func(t *testing.T) {
			body = fmt.Sprintf("setp.ge.u32 %%p, %%i, %d; @%%p bra END; mov.u32 %%y, %%i;\n", threads) + body + "END:"
			l, report, _ := remembered(t, body, words, block, func(l *launch) { l.limits.originals, l.limits.shadows = 64, 4*words*7/5 })
			require.Empty(t, report.Faults)
			kept := l.across.shadows.size() + l.across.shadows.pressed // when the last had its turn
			t.Log(float64(kept) / (4 * words))
			require.Positive(t, l.across.shadows.pressed)
			require.Less(t, kept, int64(4*words*17/10))
		})
	}
}

// A grid whose blocks meet over and over makes more records of accesses than are kept:
// what is forgotten of them makes up no race, and a race at the end is still found.
func TestForgottenAccessesAreNoRaces(t *testing.T) {
	const words, block, rounds = 1 << 9, 64, 60
	body := `mov.u32 %y, %total; mov.u32 %z, 0;
LOOP: add.u32 %j, %i, %z; rem.u32 %j, %j, %n;
` + wordOf + `st.global.u32 [%g], %z; ` + meetAll + `
add.u32 %j, %j, 64; rem.u32 %j, %j, %n;
` + wordOf + `ld.global.u32 %x, [%g]; setp.ne.u32 %p, %x, %z; @%p trap;
add.u32 %total, %total, %y; ` + strings.NewReplacer("WAIT", "WAITED", "DONE", "MET").Replace(meetAll) + `
add.u32 %total, %total, %y; add.u32 %z, %z, 1; setp.lt.u32 %p, %z, ` + strconv.Itoa(rounds) + `; @%p bra LOOP;
`
	for _, most := range []uint32{8, 100, mostRecords} {
		few := func(l *launch) { l.limits.records = most }
		l, report, _ := remembered(t, body, words, block, few)
		require.Empty(t, report.Faults, most)
		t.Log(most, l.across.records.n, l.across.records.round)
		require.Equal(t, most == mostRecords, l.across.records.round == 0)
		_, report, _ = remembered(t, body+wordOf+"st.global.u32 [%g], %i; st.global.u32 [%in], %i;", words, block, few)
		require.NotEmpty(t, report.Faults, most)
		for _, f := range report.Faults {
			require.Equal(t, bench.GlobalRace, f.Class)
		}
	}
}

// Blocks that start from later memory see what the turns before them left, whatever the
// number of workers: here a block's word is the one before it and one more, without
// order, so that it tells what the block saw.
func TestLaterStartsAreTheSame(t *testing.T) {
	const words, block = 1 << 14, 32
	body := "sub.u32 %j, %i, 33; max.s32 %j, %j, 0;\n" + wordOf + "ld.global.u32 %x, [%g]; add.u32 %x, %x, 1;\nmov.u32 %j, %i;\n" + wordOf + "st.global.u32 [%g], %x;"
	var want []byte
	for _, workers := range []int{1, 2, 7} {
		_, report, got := remembered(t, body, words, block, func(l *launch) { l.dev.opt.Workers, l.limits.originals = workers, 8 })
		require.NotEmpty(t, report.Faults)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "%d workers", workers)
	}
	require.Contains(t, want, byte(2), "no block starts from later memory")
}
