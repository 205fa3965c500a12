package vm_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
	"github.com/kgen-dev/kgen/bench/vm"
)

// evens writes 0 to the elements with an even index, by one store or atomic each.
const evens = `.version 8.0
.target sm_80
.address_size 64
.visible .entry evens(.param .u64 p)
{
	.reg .b32 %%r<8>;
	.reg .b64 %%d<4>;
	.reg .pred %%p;
	ld.param.u64 %%d0, [p];
	mov.u32 %%r0, %%tid.x;
	mov.u32 %%r1, %%ctaid.x;
	mad.lo.u32 %%r2, %%r1, 32, %%r0;
	mul.wide.u32 %%d1, %%r2, 4;
	add.u64 %%d1, %%d0, %%d1;
	and.b32 %%r3, %%r2, 1;
	setp.eq.u32 %%p, %%r3, 0;
	mov.u32 %%r4, 0;
	@%%p %s;
	ret;
}`

// untracked is the virtual machine as a device that does not know what was written.
type untracked struct{ bench.Device }

// What is wanted and never written is wrong, whatever is wanted of it: the bits that memory
// holds at first, or that it is poisoned with.
func TestNeverWritten(t *testing.T) {
	for _, checks := range []vm.Checks{{}, vm.NoChecks()} {
		for _, store := range []string{"st.global.u32 [%d1], %r4", "atom.global.exch.b32 %r5, [%d1], %r4"} {
			for _, wanted := range []struct {
				of   numcheck.Type
				odd  uint32
				what string
			}{{numcheck.F32, 0, "0"}, {numcheck.F32, 0x7fffffff, "NaN"}, {numcheck.F32, 0xffffffff, "NaN"}, {numcheck.I32, 0xffffffff, "-1"}, {numcheck.I32, 0, "0"}} {
				for _, tracks := range []bool{true, false} {
					want := make([]byte, 0, 256)
					for i := range 64 {
						v := uint32(0)
						if i%2 == 1 {
							v = wanted.odd
						}
						want = append(want, bench.U32(v)...)
					}
					c := &bench.Case{
						File: "c.json", PTXFile: "k.ptx", PTX: []byte(fmt.Sprintf(evens, store)),
						Buffers:  []bench.CaseBuffer{{Type: wanted.of, Shape: []int64{64}, Want: want}},
						Launches: []bench.CaseLaunch{{Kernel: "evens", Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Args: []bench.CaseArg{{}}}},
					}
					at := fmt.Sprintf("%s wanting %s of %s, tracked %v, checks %v", store, wanted.what, wanted.of, tracks, checks)
					r := runWritten(t, c, bench.RunOptions{}, tracks, checks)
					require.False(t, r.OK, at)
					require.EqualValues(t, 32, r.Buffers[0].Mismatches, at)
					if tracks {
						require.Equal(t, fmt.Sprintf("[1] was never written, want %s", wanted.what), r.Buffers[0].First.String(), at)
					}

					c.Buffers[0].Unset = make([]bool, 64)
					for i := 1; i < 64; i += 2 {
						c.Buffers[0].Unset[i] = true
					}
					require.True(t, runWritten(t, c, bench.RunOptions{}, tracks, checks).OK, at)
					requireUnsetSaid(t, c, tracks, checks, at)

					c.Buffers[0].Unset = nil
					r = runWritten(t, c, bench.RunOptions{Blocks: [][3]uint32{{1, 0, 0}}, Keep: true}, tracks, checks)
					require.True(t, r.OK, at)
					require.EqualValues(t, 48, r.Buffers[0].NotCompared, at)
					for i, never := range r.Unwritten[0] {
						require.Equal(t, i < 32 || i%2 == 1, never, at)
					}
				}
			}
		}
	}
}

// requireUnsetSaid runs a kernel that writes an element which the reference did not.
func requireUnsetSaid(t *testing.T, c *bench.Case, tracks bool, checks vm.Checks, at string) {
	t.Helper()
	b := &c.Buffers[0]
	right, unset := b.Want, b.Unset
	defer func() { b.Want, b.Unset = right, unset }()
	b.Want, b.Unset = bytes.Clone(right), slices.Clone(unset)
	b.Want[8] ^= 1
	b.Unset[2] = true
	r := runWritten(t, c, bench.RunOptions{}, tracks, checks)
	require.False(t, r.OK, at)
	require.EqualValues(t, 1, r.Buffers[0].Mismatches, at)
	require.Contains(t, r.Buffers[0].First.String(), "but the reference did not write element 2", at)
}

func runWritten(t *testing.T, c *bench.Case, opt bench.RunOptions, tracks bool, checks vm.Checks) *bench.Result {
	t.Helper()
	machine, err := vm.New(vm.Options{Checks: checks})
	require.NoError(t, err)
	var dev bench.Device = machine
	if !tracks {
		dev = untracked{machine}
	}
	defer dev.Close()
	r, err := bench.RunCase(context.Background(), dev, c, opt)
	require.NoError(t, err)
	require.NotNil(t, r)
	return r
}
