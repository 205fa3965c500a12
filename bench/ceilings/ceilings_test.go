package ceilings

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// small is a device of one SM with little to do.
func small(sm int) Size {
	return Size{SM: sm, SMs: 1, Bytes: 1 << 18, L2Bytes: 1 << 18, Rounds: 2, Repeat: 3}
}

// What the probes claim to do is what the virtual machine counts, without a fault.
func TestProbesDoWhatTheyClaim(t *testing.T) {
	for _, sm := range []int{75, 80, 90} {
		dev, err := vm.New(vm.Options{})
		require.NoError(t, err)
		seen := 0
		err = each(t.Context(), dev, small(sm), func(p *probe, run func() (*bench.Report, error)) error {
			r, err := run()
			if err != nil {
				return err
			}
			seen++
			require.Empty(t, r.Faults, p.kernel)
			c := &r.Counters
			if p.bytes > 0 {
				require.Equal(t, p.bytes, float64(c.Global.Loads.Bytes+c.Global.Stores.Bytes), "%s %s", p.unit, p.pattern)
				require.Equal(t, c.Global.Loads.Bytes+c.Global.Stores.Bytes, 32*(c.Global.Loads.Sectors+c.Global.Stores.Sectors), "uncoalesced")
				return nil
			}
			var tensor int64
			for _, x := range c.Tensor {
				tensor += x.Operations
			}
			if p.kernel == "mma" {
				require.Equal(t, p.flops, float64(tensor))
				return nil
			}
			// The sums at the end are beside the FMAs.
			extra := c.Instructions[ptx.PipeFMA].Thread - int64(p.flops/2)
			require.True(t, extra >= 0 && extra <= chains*threads*blocksPerSM, "%d", extra)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 7, seen)
		require.NoError(t, dev.Close())
	}
}

// clock is a device whose every launch takes 2 us.
type clock struct{ *vm.Device }

func (clock) Provenance() bench.Provenance { return bench.Measured }

func (c clock) Launch(ctx context.Context, m *bench.Module, kernel string, l bench.Launch) (*bench.Report, error) {
	return &bench.Report{Time: 2 * time.Microsecond}, nil
}

func TestMeasure(t *testing.T) {
	dev, err := vm.New(vm.Options{})
	require.NoError(t, err)
	defer dev.Close()
	z := small(80)
	_, err = Measure(t.Context(), dev, z)
	require.ErrorIs(t, err, ErrCounts)
	all, err := Measure(t.Context(), clock{dev}, z)
	require.NoError(t, err)
	require.Len(t, all, 7)
	_, bytes := z.steps(z.Bytes)
	require.Equal(t, Ceiling{"HBM", "triad", 3 * float64(bytes) / 2 / 1e3, "GB/s", 2, bench.Measured}, all[3])
	require.Equal(t, "TFLOP/s", all[6].In)
	require.Equal(t, "bf16", all[6].Unit)
}
