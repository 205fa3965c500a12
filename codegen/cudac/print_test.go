package cudac_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/cudac"
	"github.com/kgen-dev/kgen/codegen/nvrtc"
	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

func TestPrint(t *testing.T) {
	for _, m := range simttest.Modules() {
		t.Run(m.Kernels[0].Name+"/"+m.Arch, func(t *testing.T) {
			out, err := cudac.Print(m)
			require.NoError(t, err)
			t.Log("\n" + out.Text)
			c := nvrtctest.Compiler(t)
			r, err := c.Compile(t.Context(), nvrtc.Source{Name: "k.cu", Text: out.Text}, nvrtc.Options{Arch: m.Arch, Flags: []string{"--fmad=false", "--ptxas-options=-v"}})
			require.NoError(t, err)
			t.Log(r.Log)
		})
	}
}
