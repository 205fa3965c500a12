package mutate_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm/mutate"
)

const foreign = "../../../testdata/ptx/foreign"

// program is a body with a guard, a wait, a loop and what else is changed.
const program = `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
	.reg .b64 %a; .reg .b32 %r<4>; .reg .pred %p, %q;
	ld.param.u64 %a, [p];
	xor.b32 %r1, %r2, %r3;
	@%q mbarrier.init.shared.b64 [%r0], 4;
	bar.sync 0;
	@%q mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 128;
L:
	mbarrier.try_wait.parity.shared.b64 %p, [%r0], 0;
	@!%p bra L;
	ld.shared.u32 %r1, [%r0+8];
	cp.async.wait_group 1;
	@%q st.global.u32 [%a+4], %r1;
	ret;
}
`

// TestMutants lists what is changed of a small program.
func TestMutants(t *testing.T) {
	list, err := mutate.Mutants("k.ptx", []byte(program))
	require.NoError(t, err)
	var got []string
	seen := map[string]bool{}
	for _, m := range list {
		got = append(got, m.String())
		require.NotEqual(t, program, m.PTX)
		require.False(t, seen[m.PTX], "the same twice: %s", &m)
		seen[m.PTX] = true
	}
	require.Equal(t, []string{
		"line 7, xor.b32 %r1, %r2, %r3: swizzle swizzle dropped",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init dropped",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init moved past the next access",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init moved before the last access",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init another number",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init another number",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init guard dropped",
		"line 8, @%q mbarrier.init.shared.b64 [%r0], 4: init guard negated",
	}, got[:8])
	for _, want := range []string{
		"try_wait.parity.shared.b64 %p, [%r0], 0: wait answer ignored", "[%r0], 0: wait another number",
		"cp.async.wait_group 1: wait moved before the last access", "[%r0], 128: expect another number",
		"@!%p bra L: branch guard negated", "[%r0+8]: access another offset", "[%a+4], %r1: access guard dropped",
	} {
		require.Contains(t, strings.Join(got, "\n"), want)
	}
}

// subject is a case of another compiler that is right in every timing.
func subject(t *testing.T, name string, timings int) *mutate.Subject {
	t.Helper()
	c, err := bench.ReadCase(filepath.Join(foreign, name, "case.json"))
	require.NoError(t, err)
	s, err := mutate.NewSubject(t.Context(), name, c, mutate.Timings(timings))
	require.NoError(t, err)
	return s
}

// TestVerdicts: mutants of which it is known what they do.
func TestVerdicts(t *testing.T) {
	s := subject(t, "async_pipeline_clean", 2)
	list, err := mutate.Mutants("k.ptx", s.Case.PTX)
	require.NoError(t, err)
	met := map[mutate.Verdict]int{}
	for i := range list {
		m := &list[i]
		j, err := s.Judge(t.Context(), m)
		require.NoError(t, err)
		met[j.Verdict]++
		switch {
		case m.Line > 218 && m.Line < 262: // of a loop unrolled by four what is left
			require.Equal(t, mutate.NotRun, j.Verdict, m)
		case m.What == "wait" && m.Kind == mutate.Drop:
			require.Equal(t, mutate.Found, j.Verdict, m)
			require.Equal(t, bench.AsyncCopyRace, j.Class, m)
			require.Zero(t, j.Timing, m)
		}
	}
	require.Positive(t, met[mutate.Wrong])
	require.Positive(t, met[mutate.NotRun])
	require.Zero(t, met[mutate.Survived])

	j, err := s.Judge(t.Context(), &mutate.Mutant{PTX: strings.Replace(string(s.Case.PTX), "bar.sync", "bar.sunk", 1), Line: 121})
	require.NoError(t, err)
	require.Equal(t, mutate.Refused, j.Verdict)
}

// TestSample: of mutants drawn from other compilers' programs none gives answers that
// depend on the timing with nothing reported.
func TestSample(t *testing.T) {
	for _, name := range []string{"ring_clean", "bulk_store_clean", "mbarrier_clean", "softmax_f32_sm80", "attention_fp16_causal_sm90", "tma_copy_f32_sm90"} {
		s := subject(t, name, 2)
		list, err := mutate.Mutants("k.ptx", s.Case.PTX)
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(1, uint64(len(list))))
		found := 0
		for range 10 {
			m := &list[r.IntN(len(list))]
			j, err := s.Judge(t.Context(), m)
			require.NoError(t, err)
			require.NotEqual(t, mutate.Survived, j.Verdict, "%s: %s", name, m)
			if j.Verdict == mutate.Found {
				found++
			}
		}
		require.Positive(t, found, name)
	}
}
