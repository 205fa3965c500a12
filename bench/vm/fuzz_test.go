package vm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// FuzzPTX damages programs by a seed, 0 leaves them as they are, and runs
// whatever loads, in ways that follow from the seed too: nothing may panic,
// hang or use much memory.
func FuzzPTX(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(foreign, "*", "kernel.ptx"))
	if err != nil || len(files) == 0 {
		f.Fatal("no PTX to start from")
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, uint64(0))
		f.Add(src, uint64(1))
	}
	for _, m := range slices.Concat(misdeeds, wideMisdeeds) {
		f.Add([]byte(m.prepare(false).text(2)), uint64(2))
	}
	all, err := vm.ParseChecks("all")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		opt := vm.Options{Seed: seed, Workers: 1 + int(seed%3)}
		if seed != 0 {
			src = damage(src, seed)
		}
		if seed&1 != 0 {
			opt.Schedule, opt.Async, opt.Checks = vm.Shuffle, vm.Random, all
		}
		runAnything(t, src, opt)
	})
}

// runAnything loads a module and launches each kernel once, small.
func runAnything(t *testing.T, src []byte, opt vm.Options) {
	t.Helper()
	opt.MaxSteps, opt.MaxMemory = 1<<12, 1<<24
	dev, err := vm.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	m, err := dev.Load(ctx, "fuzz.ptx", src)
	requireNoBug(t, err)
	if err != nil {
		return
	}
	b, err := dev.Alloc(1<<16, 256)
	if err != nil {
		return
	}
	for _, k := range m.Kernels {
		l := bench.Launch{Grid: [3]uint32{2}, Block: [3]uint32{64}, SharedBytes: 48 << 10}
		if k.ReqThreads[0] > 0 {
			l.Block = k.ReqThreads
		}
		for _, p := range k.Params {
			arg := make(bench.Arg, p.Size)
			switch p.Size {
			case 8:
				arg = bench.Pointer(b)
			case 4:
				arg = bench.U32(40)
			}
			l.Args = append(l.Args, arg)
		}
		_, err := dev.Launch(ctx, m, k.Name, l)
		requireNoBug(t, err)
	}
	if ctx.Err() != nil {
		t.Fatal("it did not end")
	}
}

// requireNoBug refuses the errors that stand for a panic.
func requireNoBug(t *testing.T, err error) {
	t.Helper()
	var bug *bench.InternalError
	if errors.As(err, &bug) {
		t.Fatalf("%v\n%s", bug, bug.Stack)
	}
}

// TestDamagedPrograms swaps and drops pieces of real programs.
func TestDamagedPrograms(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(foreign, "*", "kernel.ptx"))
	if err != nil || len(files) == 0 {
		t.Fatal("no PTX to start from")
	}
	for i, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(src) > 8<<10 {
			continue
		}
		for n := range 12 {
			runAnything(t, damage(src, uint64(100*i+n)), vm.Options{Seed: uint64(n), Schedule: vm.Shuffle, Async: vm.Random})
		}
	}
}

// TestGreedyPrograms: programs that ask for very much are refused, or run in
// bounded memory.
func TestGreedyPrograms(t *testing.T) {
	var many strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&many, "add.u32 %%x, %%x, %d;\n", 1000+i)
	}
	for _, c := range []struct {
		name, want string
		p          small
	}{
		{"constants", "registers and constants", small{regs: ".reg .b32 %x;", body: "mov.u32 %x, 0;" + many.String()}},
		{"local memory", "local memory", small{body: ".local .b8 x[600000];"}},
		{"shared memory", "bytes of shared memory", small{decls: ".shared .b8 x[600000];", regs: ".reg .b64 %x;", body: "mov.u64 %x, x;"}},
		{"groups of copies", "cp.async.wait_group: -1 groups: want 0 to 2147483647", small{body: "cp.async.wait_group -1;"}},
		{"groups of bulk copies", "cp.async.bulk.wait_group: -1 groups", small{target: "sm_90a", body: "cp.async.bulk.wait_group -1;"}},
		{"groups of products", "wgmma.wait_group.sync.aligned: -1 groups", small{target: "sm_90a", body: "wgmma.wait_group.sync.aligned -1;"}},
		{"global memory", "1000000000000 bytes of global memory: want at most", small{decls: ".global .b8 x[1000000000000];"}},
	} {
		_, _, err := c.p.try(t)
		require.ErrorContains(t, err, c.want, c.name)
	}
	p := small{regs: ".reg .b64 %x;", body: ".local .b8 x[500000]; mov.u64 %x, x; st.local.u32 [%x], 1;", grid: 20, block: 64, opt: vm.Options{Workers: 8}}
	_, report := p.run(t)
	require.Empty(t, report.Faults)
}
