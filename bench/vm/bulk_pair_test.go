package vm_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/vm"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// pairCopies is a kernel of a pair of blocks that each bring their half of a
// tensor, and tell the first block's mbarrier of it.
const pairCopies = `.version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {
.reg .b32 %t, %a, %rank, %bar, %c, %v; .reg .b64 %m, %g; .reg .pred %p, %q, %first;
mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %a, sm; setp.eq.u32 %q, %t, 0; mov.b64 %m, map; cvta.param.u64 %m, %m;
@%q mbarrier.init.shared.b64 [%a+1024], 1; fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.eq.and.u32 %first, %rank, 0, %q;
@%first mbarrier.arrive.expect_tx.shared.b64 _, [%a+1024], 256;
add.u32 %bar, %a, 1024; mapa.shared::cluster.u32 %bar, %bar, 0; shl.b32 %c, %rank, 5;
@%q cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%a], [%m, {%c}], [%bar];
setp.ne.u32 %p, %rank, 0; @%p bra OVER;
W: mbarrier.try_wait.parity.shared.b64 %p, [%a+1024], 0; @!%p bra W;
OVER: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %v, [%a]; mad.lo.u32 %c, %rank, 32, %t; ld.param.u64 %g, [out]; mad.wide.u32 %g, %c, 4, %g; st.global.u32 [%g], %v;
ret;
}`

// TestPairCopies: with .cta_group::2 the mbarrier may be in the other block of
// the pair, without it is a fault.
func TestPairCopies(t *testing.T) {
	for _, opt := range timings {
		got, faults := runPairCopies(t, pairCopies, opt)
		require.Empty(t, faults)
		for i, v := range got {
			require.Equal(t, math.Float32bits(float32(i)), v)
		}
	}
	_, faults := runPairCopies(t, replace(pairCopies, "cta_group::2", "cta_group::1"), vm.Options{})
	require.Equal(t, bench.MbarrierMisuse, faults[0].Class)
}

func runPairCopies(t *testing.T, text string, opt vm.Options) ([]uint32, []bench.Fault) {
	t.Helper()
	dev, err := vm.New(opt)
	require.NoError(t, err)
	ctx := context.Background()
	m, err := dev.Load(ctx, "pair.ptx", []byte(text))
	require.NoError(t, err)
	data, err := dev.Alloc(256, 256)
	require.NoError(t, err)
	require.NoError(t, dev.Write(data, 0, floats(64, func(i int) float32 { return float32(i) })))
	out, err := dev.Alloc(256, 256)
	require.NoError(t, err)
	arg, err := dev.TensorMap(&bench.TensorMap{Address: data.Address, Type: ptx.F32, Dims: []uint64{64}, Box: []uint32{32}, ElementStrides: []uint32{1}})
	require.NoError(t, err)
	report, err := dev.Launch(ctx, m, "k", bench.Launch{Grid: [3]uint32{2}, Block: [3]uint32{32}, Cluster: [3]uint32{2}, SharedBytes: 2048, Args: []bench.Arg{arg, bench.Pointer(out)}})
	require.NoError(t, err)
	bytes := make([]byte, 256)
	require.NoError(t, dev.Read(out, 0, bytes))
	return toWords(bytes), report.Faults
}
