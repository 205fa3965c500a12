package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// misuser is a part of the consumer: it gives a generated package what it must refuse and
// prints the errors, by what was wrong.
const misuser = `package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"consumer/kernels"
)

type blindLauncher struct{}

func (blindLauncher) Load([]byte, string, uint32) (uintptr, error) { return 1, nil }

func (blindLauncher) Launch(_ uintptr, _, _, _ [3]uint32, _ uint32, _ uintptr, _ []byte, _ []int) error {
	return nil
}

func misuse() {
	device := kernels.Device{Major: 8}
	paged, err := kernels.PlanPaged(kernels.Device{Major: 9}, kernels.PagedShape{Batch: 1, Query: 1, KVHeads: 1, Entries: 4, Pages: 8})
	check(err)
	gemm, err := kernels.PlanGemm(device, kernels.GemmShape{M: 64, N: 64, K: 64})
	check(err)
	norm, err := kernels.PlanLayerNorm(device, kernels.LayerNormShape{Rows: 4, Cols: 64})
	check(err)
	const at = 1 << 20
	workspace := make([]uint64, len(paged.Workspace))
	for i := range workspace {
		workspace[i] = at
	}
	pagedArgs := func(change func(*kernels.PagedArgs)) *kernels.PagedArgs {
		a := &kernels.PagedArgs{Q: at, K: at, V: at, Table: at, Len: at, O: at, Lse: at}
		change(a)
		return a
	}
	normArgs := func(change func(*kernels.LayerNormArgs)) *kernels.LayerNormArgs {
		a := &kernels.LayerNormArgs{X: at, Residual: at, Weight: at, Bias: at, Y: at, Sum: at, Mean: at, Rstd: at}
		change(a)
		return a
	}
	good := pagedArgs(func(*kernels.PagedArgs) {})
	gemmArgs := &kernels.GemmArgs{A: at, B: at, C: at}
	var none *kernels.GemmArgs
	var noPlan *kernels.Plan

	said := map[string]string{}
	try := func(name string, f func() error) {
		defer func() {
			if r := recover(); r != nil {
				said[name] = fmt.Sprint("panic: ", r)
			}
		}()
		said[name] = "nothing"
		if err := f(); err != nil {
			said[name] = err.Error()
		}
	}
	pagedChecks := func(name string, change func(*kernels.PagedArgs)) {
		try(name, func() error { return pagedArgs(change).Check(paged, workspace) })
	}
	normChecks := func(name string, change func(*kernels.LayerNormArgs)) {
		try(name, func() error { return normArgs(change).Check(norm, nil) })
	}
	packs := func(name string, p *kernels.Plan, step int, values, workspace []uint64) {
		try(name, func() error { _, err := p.Pack(step, values, workspace); return err })
	}

	pagedChecks("good", func(*kernels.PagedArgs) {})
	pagedChecks("table", func(a *kernels.PagedArgs) { a.Table++ })
	pagedChecks("len", func(a *kernels.PagedArgs) { a.Len += 2 })
	pagedChecks("lse", func(a *kernels.PagedArgs) { a.Lse += 1 })
	pagedChecks("scale nan", func(a *kernels.PagedArgs) { a.Scale = float32(math.NaN()) })
	pagedChecks("scale inf", func(a *kernels.PagedArgs) { a.Scale = float32(math.Inf(1)) })
	pagedChecks("scale negative", func(a *kernels.PagedArgs) { a.Scale = -3 })
	normChecks("good norm", func(a *kernels.LayerNormArgs) { a.Seed, a.Offset = -1, -1 })
	normChecks("mean", func(a *kernels.LayerNormArgs) { a.Mean += 2 })
	normChecks("eps negative", func(a *kernels.LayerNormArgs) { a.Eps = -1 })
	normChecks("eps nan", func(a *kernels.LayerNormArgs) { a.Eps = float32(math.NaN()) })
	normChecks("eps inf", func(a *kernels.LayerNormArgs) { a.Eps = float32(math.Inf(-1)) })

	for i := range workspace {
		w := append([]uint64{}, workspace...)
		w[i] += 128
		try(fmt.Sprint("workspace ", i), func() error { return good.Check(paged, w) })
	}
	try("workspace short", func() error { return good.Check(paged, workspace[1:]) })
	try("plan of gemm", func() error { return good.Check(gemm, nil) })
	try("plan of paged", func() error { return gemmArgs.Check(paged, workspace) })
	try("norm with gemm", func() error { return normArgs(func(*kernels.LayerNormArgs) {}).Check(gemm, nil) })
	try("run of another", func() error { return paged.Run(blindLauncher{}, gemmArgs, workspace, 0) })
	try("plan made by hand", func() error { return gemmArgs.Check(&kernels.Plan{}, nil) })
	try("nil plan", func() error { return gemmArgs.Check(nil, nil) })
	try("nil plan packs", func() error { _, err := gemmArgs.Pack(nil, 0, nil); return err })
	try("nil plan runs", func() error { return noPlan.Run(blindLauncher{}, gemmArgs, nil, 0) })
	try("nil arguments", func() error { return none.Check(gemm, nil) })
	try("nil arguments run", func() error { return gemm.Run(blindLauncher{}, none, nil, 0) })
	try("no arguments run", func() error { return gemm.Run(blindLauncher{}, nil, nil, 0) })
	try("nil launcher", func() error { return gemm.Run(nil, gemmArgs, nil, 0) })
	try("good run", func() error { return gemm.Run(blindLauncher{}, gemmArgs, nil, 0) })
	try("step above", func() error { _, err := good.Pack(paged, len(paged.Steps), workspace); return err })
	try("step below", func() error { _, err := good.Pack(paged, -1, workspace); return err })
	packs("good values", gemm, 0, []uint64{at, at, at}, nil)
	packs("no values", gemm, 0, nil, nil)
	packs("values too few", gemm, 0, []uint64{at, at}, nil)
	packs("values too many", gemm, 0, []uint64{at, at, at, at}, nil)
	packs("nil plan with values", nil, 0, nil, nil)
	packs("plan by hand with values", &kernels.Plan{}, 0, nil, nil)

	lens := func(name string, s kernels.PagedShape) {
		try(name, func() error { return s.CheckLen([]int32{1}) })
	}
	lens("good len", kernels.PagedShape{Batch: 1, Entries: 1})
	lens("entries", kernels.PagedShape{Batch: 1, Entries: math.MaxInt})
	lens("batch", kernels.PagedShape{Batch: -1, Entries: 1})
	check(json.NewEncoder(os.Stdout).Encode(said))
}
`

// requireMisuseRefused holds what the consumer's misuser is told to what is right.
func requireMisuseRefused(t *testing.T, program string) {
	t.Helper()
	out, refused := askConsumer(t, program, map[string]any{"Family": "misuse"})
	require.Empty(t, refused)
	said := map[string]string{}
	require.NoError(t, json.Unmarshal(out, &said))
	const gemmPlan = "want a plan of PlanGemm"
	for name, want := range map[string]string{
		"good": "nothing", "good norm": "nothing", "good run": "nothing", "good values": "nothing", "good len": "nothing",

		"table":          "table at 0x100001: want an address that is a multiple of 4",
		"len":            "len at 0x100002: want an address that is a multiple of 4",
		"lse":            "lse at 0x100001: want an address that is a multiple of 4",
		"mean":           "mean at 0x100002: want an address that is a multiple of 16",
		"scale nan":      "Scale NaN: want a finite number, 0 or more",
		"scale inf":      "Scale +Inf: want a finite number, 0 or more",
		"scale negative": "Scale -3: want a finite number, 0 or more",
		"eps negative":   "Eps -1: want a finite number, 0 or more",
		"eps nan":        "Eps NaN: want a finite number, 0 or more",
		"eps inf":        "Eps -Inf: want a finite number, 0 or more",

		"workspace 0":     "part at 0x100080: want an address that is a multiple of 256",
		"workspace 1":     "top at 0x100080: want an address that is a multiple of 256",
		"workspace 2":     "denominator at 0x100080: want an address that is a multiple of 256",
		"workspace short": "2 workspace buffers: want 3",

		"plan of gemm":      "plan gemm_a100_sxm4_80 takes GemmArgs: want a plan of PlanPaged",
		"plan of paged":     "plan paged_h100_sxm5_80 takes PagedArgs: " + gemmPlan,
		"norm with gemm":    "plan gemm_a100_sxm4_80 takes GemmArgs: want a plan of PlanLayerNorm",
		"run of another":    "plan paged_h100_sxm5_80 takes PagedArgs: " + gemmPlan,
		"plan made by hand": "no plan: " + gemmPlan,
		"nil plan":          "no plan: " + gemmPlan,
		"nil plan packs":    "no plan: " + gemmPlan,
		"nil plan runs":     "no plan: " + gemmPlan,
		"nil arguments":     "GemmArgs nil: want arguments",
		"nil arguments run": "GemmArgs nil: want arguments",
		"no arguments run":  "arguments nil: want GemmArgs",
		"nil launcher":      "launcher nil: want a binding of the driver",
		"step above":        "step 2: want 0 to 1",
		"step below":        "step -1: want 0 to 1",

		"no values":                "0 values: want 3",
		"values too few":           "2 values: want 3",
		"values too many":          "4 values: want 3",
		"nil plan with values":     "no plan: want one of a function Plan...",
		"plan by hand with values": "no plan: want one of a function Plan...",

		"entries": "Entries 9223372036854775807: want 1 to 2147418112",
		"batch":   "Batch -1: want 1 to 2147418112",
	} {
		require.Equal(t, want, said[name], name)
		delete(said, name)
	}
	require.Empty(t, said)
}
