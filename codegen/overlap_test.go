package codegen_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
)

// TestOverlapHidesTheSoftmax: in the machine code of default attention with overlap, the
// main loop issues both products, waits for the scores alone, and has computed all
// exponentials before it waits for the other.
func TestOverlapHidesTheSoftmax(t *testing.T) {
	ptxas, disasm := nvrtctest.Ptxas(t), nvrtctest.Nvdisasm(t)
	s := hopperSample(t, "flashattn", nil, nil, 0)
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{})
	require.NoError(t, err)
	require.Empty(t, c.Kernels[0].Notes)
	text, err := c.PTX()
	require.NoError(t, err)
	r, err := ptxas.Assemble(context.Background(), []byte(text), c.Module.Arch)
	require.NoError(t, err)
	require.Empty(t, nvrtc.Serialised(r.Log))
	require.Zero(t, r.Usage[0].SpillStoreBytes)
	sass, err := disasm.Disassemble(context.Background(), r.Cubin)
	require.NoError(t, err)
	_, loop, found := strings.Cut(sass, "DEPBAR.LE gsb0, 0x1") // one product stays under way
	require.True(t, found, "nothing is left under way")
	hidden, _, found := strings.Cut(loop, "DEPBAR.LE gsb0, 0x0")
	require.True(t, found)
	const weights = 128 * 128 / 256 // of a thread, and two factors of rescaling
	require.Equal(t, weights+2, strings.Count(hidden, "MUFU.EX2"))
}

// TestOverlapNeedsTwoProducts: where no product feeds another, the hint is left aside and
// the kernel says so.
func TestOverlapNeedsTwoProducts(t *testing.T) {
	s := hopperSample(t, "gemm", nil, nil, 0)
	s.prog.Kernels[0].Hints.Overlap = 1
	c, err := codegen.Compile(s.prog, s.gpu, codegen.Options{Verify: true})
	require.NoError(t, err)
	require.Len(t, c.Kernels[0].Notes, 1)
	require.Contains(t, c.Kernels[0].Notes[0], "do not overlap")
}
