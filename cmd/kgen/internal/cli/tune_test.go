package cli

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/kernels/family"
	"github.com/kgen-dev/kgen/kernels/space"
	"github.com/kgen-dev/kgen/roofline"
	"github.com/kgen-dev/kgen/roofline/measured"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/explore"
	"github.com/kgen-dev/kgen/tune/store"
)

func tuned() *tune.Result {
	us := 156.0
	return &tune.Result{
		Kernel: "gemm", GPU: "a100-sxm4-80", Problem: family.Settings{{Name: "m", Value: "4096"}, {Name: "dtype", Value: "bf16"}},
		Space: tune.Space{Total: 18, Valid: 12}, Removed: space.Counts{Total: 18, Valid: 12, Removed: []space.Removed{{Constraint: "shared", Count: 6}}},
		Compiled: 11, Failed: 1, Causes: []explore.Cause{{Outcome: store.Resources, Count: 1, Config: space.Of("BM", 256), Error: "600 bytes of spills"}},
		Seconds:  map[string]float64{"compile": 20, "verify": 3.25},
		Failures: map[store.Outcome]int{store.Resources: 1}, Toolchain: "NVRTC 13.0",
		Best: []tune.Best{
			{
				Config: space.Of("BM", 128, "BN", 256, "BK", 32, "warps", 8, "stages", 3), TimeUS: 610.25, TFLOPS: 225.2, Score: 0.722,
				Limit: roofline.Tensor, Registers: 212, SharedBytes: 73728, CTAsPerSM: 1, Instructions: map[string]int{"HMMA": 64, "LDGSTS": 12, "LDSM": 24}, Verified: true, Provenance: bench.Predicted,
			},
			{
				Config: space.Of("BM", 64, "BN", 64, "BK", 32, "warps", 4, "stages", 4), TimeUS: 1002, TFLOPS: 137.2, Score: 0.44,
				Limit: roofline.Shared, Registers: 96, SharedBytes: 32768, SpillBytes: 8, CTAsPerSM: 5, Provenance: bench.Predicted, Fault: "not checked",
			},
		},
		LibraryUS: &us, Library: &tune.Library{Time: measured.Time{US: us, Framework: "vLLM", Version: "0.14.0", Type: "float16", Match: measured.Exact}, Provenance: bench.Measured},
		Notes:     []string{"mma.sync serves."},
		Artifacts: tune.Artifacts{CUDA: "/a/best.cu", PTX: "/a/best.ptx", Cubin: "/a/best.cubin", Roofline: "/a/roofline.svg", Progress: "/a/progress.svg", Store: "/s/tune.db"},
	}
}

const tunedText = `gemm (m=4096 dtype=bf16) on NVIDIA A100 SXM4 80GB
space     12 of 18 valid; shared removed 6
compiled  11 (NVRTC 13.0); failed: resources 1

TILE BMxBNxBK  WARPS  STAGES  REGISTERS  SHARED B  SPILLS B  CTAS/SM  TIME                  TFLOP/S  SCORE  LIMIT   VERIFIED
128x256x32     8      3       212        73728     0         1        610.2 us   predicted  225.2    0.72   tensor  yes
64x64x32       4      4       96         32768     8         5        1002.0 us  predicted  137.2    0.44   shared  no

TFLOP/S, SCORE and LIMIT are predicted like TIME; SCORE is the least possible time over TIME.
REGISTERS, SHARED and SPILLS are the compiled kernel's, CTAS/SM by formula (~: with an estimate of the registers).

failed    resources, 1 such as BM=256: 600 bytes of spills
sass      64 HMMA, 12 LDGSTS, 24 LDSM; 212 registers, 0 bytes of spills
seconds   compile 20.0, verify 3.2, of all processes together
library   156 us (vLLM 0.14.0, float16, exact), measured
note      mma.sync serves.
cuda      /a/best.cu
ptx       /a/best.ptx
cubin     /a/best.cubin
roofline  /a/roofline.svg
progress  /a/progress.svg
store     /s/tune.db
`

func TestPrintTuning(t *testing.T) {
	var out, words strings.Builder
	a := &app{out: &writer{w: &out}, err: &words, log: slog.New(slog.NewTextHandler(&words, nil))}
	j := &job{gpu: must(target.Lookup("a100"))}
	require.NoError(t, a.printTuning(j, tuned(), nil))
	require.Equal(t, tunedText, out.String())
	require.Empty(t, words.String())
}

// A wrong kernel is named, and ends the command as a check that failed does.
func TestPrintTuningWrong(t *testing.T) {
	var out strings.Builder
	a := &app{out: &writer{w: &out}, err: io.Discard, log: slog.New(slog.DiscardHandler)}
	r := tuned()
	r.Wrong = []tune.Wrong{{Config: space.Of("BM", 32, "warps", 4), Outcome: store.Correctness, Fault: "c[0 3] is wrong\nby 2"}}
	j := &job{gpu: must(target.Lookup("a100"))}
	err := a.printTuning(j, r, nil)
	require.Equal(t, exitWrong, exitCode(err))
	require.ErrorContains(t, err, "BM=32")
	require.Contains(t, out.String(), "\nwrong     BM=32 warps=4: c[0 3] is wrong; by 2\n")
	a.json = true
	require.Equal(t, exitWrong, exitCode(a.printTuning(j, r, nil)))
}

// What nobody compiled is not shown as 0, and what follows from an estimate is marked.
func TestPrintTuningUncompiled(t *testing.T) {
	var out strings.Builder
	a := &app{out: &writer{w: &out}, err: io.Discard, log: slog.New(slog.DiscardHandler)}
	r := tuned()
	r.Best = r.Best[:1]
	r.Best[0].Registers, r.Best[0].Estimated = 0, true
	r.Compiled = 0
	require.NoError(t, a.printTuning(&job{gpu: must(target.Lookup("a100"))}, r, nil))
	require.Regexp(t, `128x256x32 +8 +3 +\? +73728 +\? +~1 +610\.2 us`, out.String())
	require.Contains(t, out.String(), "compiled  0 (NVRTC 13.0); failed: resources 1\n")
}

// The one JSON object has the fields that scripts rely on.
func TestPrintTuningJSON(t *testing.T) {
	var out strings.Builder
	a := &app{out: &writer{w: &out}, err: io.Discard, json: true, log: slog.New(slog.DiscardHandler)}
	require.NoError(t, a.printTuning(&job{}, tuned(), nil))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	keys := func(m any) []string {
		var names []string
		for k := range m.(map[string]any) {
			names = append(names, k)
		}
		return names
	}
	require.ElementsMatch(t, []string{"kernel", "gpu", "problem", "space", "compiled", "failed", "failures", "causes", "best", "importance", "importance_together", "importance_samples", "seconds", "library_us", "library", "next", "artifacts"}, keys(got))
	require.ElementsMatch(t, []string{
		"config", "time_us", "tflops", "score", "limit", "limits", "registers", "shared_bytes", "spill_bytes", "ctas_per_sm", "instructions", "verified", "provenance", "terms",
	}, keys(got["best"].([]any)[0]))
	require.ElementsMatch(t, []string{"cuda", "ptx", "cubin", "launch", "roofline", "progress", "store"}, keys(got["artifacts"]))
	require.InDelta(t, 156.0, got["library_us"], 0)
}

// Where no one watches, each phase is a line, and no bar is drawn.
func TestProgressLines(t *testing.T) {
	var words strings.Builder
	a := &app{err: &words, log: slog.New(slog.NewTextHandler(&words, &slog.HandlerOptions{ReplaceAttr: dropTime}))}
	p := a.newProgress()
	best := tuned().Best[0]
	p.tuning(tune.Progress{Phase: tune.Compile, Done: 0, Total: 10})
	p.tuning(tune.Progress{Phase: tune.Compile, Done: 5, Total: 10, Best: &best})
	p.tuning(tune.Progress{Phase: tune.Verify, Done: 0, Total: 3, Best: &best, Left: 1400 * time.Millisecond})
	p.done()
	require.Equal(t, `level=INFO msg=compile done=0 of=10
level=INFO msg=verify done=0 of=3 best="610.2 us predicted" left=1s
`, words.String())
}

// Where someone does, a bar is drawn and removed.
func TestProgressBar(t *testing.T) {
	var words strings.Builder
	p := newProgress(&app{err: &words}, true)
	best := tuned().Best[0]
	p.tuning(tune.Progress{Phase: tune.Rank})
	p.tuning(tune.Progress{Phase: tune.Compile, Done: 1, Total: 10, Best: &best})
	p.log.Info("unseen")
	p.log.Warn("a line above")
	p.tuning(tune.Progress{Phase: tune.Verify, Done: 1, Total: 10})
	p.done()
	require.Contains(t, words.String(), "compile, best 610.2 us predicted")
	require.Contains(t, words.String(), "verify")
	require.Contains(t, words.String(), "\rlevel=WARN msg=\"a line above\"\n")
	require.Equal(t, 1, strings.Count(words.String(), "\n"))
}
