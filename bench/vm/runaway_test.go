package vm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
)

// onWorkers runs a program on one worker and on several: the faults and the
// error must be the same.
func (s small) onWorkers(t *testing.T, buffers ...[]byte) (*bench.Report, error) {
	t.Helper()
	var first *bench.Report
	var failed error
	for _, n := range []int{1, 2, 5} {
		s.opt.Workers = n
		report, err := s.launch(t, buffers...)
		if n == 1 {
			first, failed = report, err
			continue
		}
		require.Equal(t, failed, err, "%d workers", n)
		require.Equal(t, first.Faults, report.Faults, "%d workers", n)
		require.Equal(t, first.Printed, report.Printed, "%d workers", n)
	}
	return first, failed
}

// launch is try, with the report even of a launch that failed.
func (s small) launch(t *testing.T, buffers ...[]byte) (*bench.Report, error) {
	t.Helper()
	dev, err := vm.New(s.opt)
	require.NoError(t, err)
	ctx := context.Background()
	m, err := dev.Load(ctx, "small.ptx", []byte(s.text(len(buffers))))
	require.NoError(t, err)
	l := bench.Launch{Grid: [3]uint32{max(s.grid, 1)}, Block: [3]uint32{max(s.block, 1)}}
	for _, data := range buffers {
		b, err := dev.Alloc(int64(len(data)), 256)
		require.NoError(t, err)
		require.NoError(t, dev.Write(b, 0, data))
		l.Args = append(l.Args, bench.Pointer(b))
	}
	return dev.Launch(ctx, m, "k", l)
}

// TestEndless: a launch that does not end is stopped by counting, whatever is
// looked for, and the report says where its warps stand.
func TestEndless(t *testing.T) {
	none, err := vm.ParseChecks("none")
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		want string
		p    small
	}{
		{"one warp", "no end after 100000 warp instructions: block [0 0 0]: warp 0 at line 11", small{body: "L: bra L;"}},
		{"nothing looked for", "block [0 0 0]: warp 0 at line 11", small{body: "L: bra L;", opt: vm.Options{Checks: none}}},
		{"many warps", "block [0 0 0]: 4 warps from 0 to 3 at line 11", small{body: "L: bra L;", block: 128, grid: 9}},
		{"beside a barrier", "2 warps from 0 to 1 at line 12, 2 warps from 2 to 3 waiting for barrier 0 (line 13)", small{
			regs: ".reg .pred %p;", block: 128, body: "setp.ge.u32 %p, %t, 64; @%p bra B;\nL: bra L;\nB: bar.sync 0;",
		}},
		{"part of a warp", "lanes fffffffe at line 13 and lanes 00000001 at line 12", small{
			regs: ".reg .pred %p;", block: 32, body: "setp.ne.u32 %p, %t, 0; @%p bra B;\nA: bra A;\nB: bra B;",
		}},
		{"a later block", "block [3 0 0]: warp 0 at line 12", small{
			regs: ".reg .b32 %b; .reg .pred %p;", grid: 9, body: "mov.u32 %b, %ctaid.x; setp.ne.u32 %p, %b, 3; @%p ret;\nL: bra L;",
		}},
		{"blocks that poll and count", "no end after", small{
			regs: ".reg .b32 %x, %n; .reg .pred %p;", grid: 3,
			body: "mov.u32 %n, 0;\nL: ld.acquire.gpu.global.u32 %x, [%in0]; add.u32 %n, %n, 1; setp.eq.u32 %p, %x, 0; @%p bra L;",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.opt.MaxSteps = 100000
			report, err := c.p.onWorkers(t, make([]byte, 8))
			require.NoError(t, err)
			require.Len(t, report.Faults, 1)
			f := report.Faults[0]
			require.Equal(t, bench.Deadlock, f.Class)
			require.Contains(t, f.Message, "no end after")
			require.Contains(t, f.Message, c.want)
			require.Positive(t, f.Line)
		})
	}
}

// TestHugeGrid: a grid of more blocks than the steps of a launch let start is refused,
// one whose blocks take too many is stopped, and neither is a deadlock; of chosen blocks
// only those run.
func TestHugeGrid(t *testing.T) {
	ctx := context.Background()
	for _, workers := range []int{1, 4} {
		dev, err := vm.New(vm.Options{MaxSteps: 1 << 18, Workers: workers})
		require.NoError(t, err)
		m, err := dev.Load(ctx, "small.ptx", []byte(small{}.text(0)))
		require.NoError(t, err)
		l := bench.Launch{Grid: [3]uint32{1<<31 - 1, 65535, 65535}}
		_, err = dev.Launch(ctx, m, "k", l)
		require.EqualError(t, err, "kernel k: 9223090559730712575 blocks: want at most 1366 in a launch of 262144 steps, of which starting one takes 192: fewer blocks, --blocks or more --max-steps")
		_, err = dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{1366}})
		require.ErrorContains(t, err, "1366 blocks, of which 1352 have run in 262288 steps: want at most 1352 in a launch of 262144 steps")
		l.Blocks = [][3]uint32{{1<<31 - 2, 65534, 65534}, {7, 0, 1}}
		report, err := dev.Launch(ctx, m, "k", l)
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		require.EqualValues(t, 2, report.Counters.Blocks)
	}
}

// TestInterrupt: a long launch ends when its context does, also where no warp
// ever has its whole share because it waits for others or polls.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		name string
		grid uint32
		p    small
	}{
		{"a loop", 1, small{body: "L: bra L;"}},
		{"blocks", 1 << 30, small{}},
		{"barriers", 1, small{body: "L: bar.sync 0; bra L;", block: 64}},
		{"a warp's barriers", 1, small{body: "L: bar.warp.sync 0xffffffff; bra L;", block: 64}},
		{"halves of a warp", 1, small{regs: ".reg .b32 %x; .reg .pred %p;", body: "setp.lt.u32 %p, %t, 16; @%p bra L; M: bar.sync 0; bra M; L: bar.sync 0; bra L;", block: 64}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev, err := vm.New(vm.Options{MaxSteps: 1 << 60})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			m, err := dev.Load(ctx, "small.ptx", []byte(c.p.text(0)))
			require.NoError(t, err)
			_, err = dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{c.grid}, Block: [3]uint32{max(c.p.block, 1)}})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// TestKernelErrors: what ends a launch is the kernel's failure, says where, and
// keeps the faults and the text from before.
func TestKernelErrors(t *testing.T) {
	const before = "ld.global.u32 %x, [%in0+4096]; ld.global.u32 %x, [%in0];\n"
	for _, c := range []struct {
		name, want string
		p          small
	}{
		{"trap", "small.ptx:12: kernel k, block [0 0 0], thread [0 0 0]: trap", small{body: before + "trap;"}},
		{"some threads", "small.ptx:12: kernel k, block [0 0 0], thread [5 0 0]: trap", small{body: before + "setp.lt.u32 %p, %t, 5; @%p bra E; trap; E:", block: 64}},
		{"an index", "brx.idx with index 40: the list has 2 targets", small{body: before + "T: .branchtargets A, B;\nadd.u32 %x, %t, 40; brx.idx %x, T; A: B:"}},
		{"a call", "call of address 0x60: no function with these parameters begins there", small{body: before + "mov.u64 %f, 96;\nP: .callprototype _ ();\ncall %f, (), P;"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.regs, c.p.grid = ".reg .b32 %x; .reg .b64 %f; .reg .pred %p;", 7
			report, err := c.p.onWorkers(t, make([]byte, 8))
			require.ErrorContains(t, err, c.want)
			var failed *bench.KernelError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, [3]uint32{}, failed.Block)
			require.Len(t, report.Faults, 1)
			require.Equal(t, bench.GlobalOutOfBounds, report.Faults[0].Class)
		})
	}
}

// TestBarrierCount: a barrier waits for whole warps, and says so where asked
// for anything else.
func TestBarrierCount(t *testing.T) {
	for _, c := range []struct {
		body  string
		fault string
	}{
		{"bar.sync 1, 64;", ""},
		{"bar.sync 1;", ""},
		{"bar.sync 1, 0;", "barrier 1 of 0 threads: want a multiple of 32 from 32"},
		{"mov.u32 %c, 33; bar.sync 1, %c;", "barrier 1 of 33 threads: want a multiple of 32 from 32"},
		{"mov.u32 %c, 50; barrier.sync 2, %c;", "barrier 2 of 50 threads: want a multiple of 32 from 32"},
		{"mov.u32 %c, 63; bar.sync 3, %c;", "barrier 3 of 63 threads: want a multiple of 32 from 32"},
		{"mov.u32 %c, 40; bar.red.popc.u32 %c, 1, %c, %p;", "barrier 1 of 40 threads: want a multiple of 32 from 32"},
	} {
		_, report := small{regs: ".reg .b32 %c; .reg .pred %p;", body: "setp.eq.u32 %p, %t, 0;" + c.body, block: 64}.run(t)
		if c.fault == "" {
			require.Empty(t, report.Faults, c.body)
			continue
		}
		require.Len(t, report.Faults, 1, c.body)
		require.Equal(t, bench.BarrierDivergence, report.Faults[0].Class)
		require.Equal(t, c.fault, report.Faults[0].Message)
	}
}

// TestManyKernels: only kernels that are launched are decoded, so a file of
// many costs little, and the launches of a file no more than a limit.
func TestManyKernels(t *testing.T) {
	text := ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry small() { ret; }\n.global .texref t;\n" +
		".visible .entry refused() { .reg .b32 %x; tex.1d.v4.s32.s32 {%x,%x,%x,%x}, [t, {%x}]; }\n" +
		".func f() {" + strings.Repeat("ret;", 524289) + "}\n.visible .entry large() { call f, (); }\n"
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	ctx := context.Background()
	m, err := dev.Load(ctx, "many.ptx", []byte(text))
	require.NoError(t, err)
	_, err = dev.Launch(ctx, m, "small", bench.Launch{})
	require.NoError(t, err)
	_, err = dev.Launch(ctx, m, "refused", bench.Launch{})
	require.ErrorContains(t, err, "many.ptx:6:43: tex.1d.v4.s32.s32: ")
	_, err = dev.Launch(ctx, m, "large", bench.Launch{})
	require.ErrorContains(t, err, "kernel large: 524292 instructions with the functions it reaches and the kernels before it: the virtual machine takes 524288")
}
