package ptx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/ptx"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

func TestFromSIMT(t *testing.T) {
	for _, m := range simttest.Modules() {
		t.Run(m.Kernels[0].Name+"/"+m.Arch, func(t *testing.T) {
			out, err := ptx.FromSIMT(m)
			require.NoError(t, err)
			t.Log(out)
			a, err := nvrtctest.Ptxas(t).Assemble(t.Context(), []byte(out.String()), m.Arch)
			require.NoError(t, err)
			t.Log(a.Usage)
		})
	}
}
