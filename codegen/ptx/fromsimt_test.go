package ptx

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/codegen/nvrtc/nvrtctest"
	"github.com/kgen-dev/kgen/codegen/simt"
	"github.com/kgen-dev/kgen/codegen/simt/simttest"
)

// TestFromSIMTGolden compares the sample kernels' PTX with testdata/fromsimt.
func TestFromSIMTGolden(t *testing.T) {
	for _, m := range simttest.Modules() {
		k := m.Kernels[0]
		simt.Clean(k)
		out, err := FromSIMT(m)
		require.NoError(t, err)
		golden(t, filepath.Join("testdata", "fromsimt", k.Name+".ptx"), out.String())
	}
}

// TestFromSIMTAssembles has ptxas assemble every operation, kernels that need
// the same PTX version together in a module of that version.
func TestFromSIMTAssembles(t *testing.T) {
	ptxas := nvrtctest.Ptxas(t)
	for _, m := range simtSamples() {
		t.Run(m.Kernels[0].Name+"/"+m.Arch, func(t *testing.T) {
			for _, part := range byVersion(m) {
				out, err := FromSIMT(part)
				require.NoError(t, err)
				_, err = ptxas.Assemble(t.Context(), []byte(out.String()), m.Arch)
				require.NoError(t, err, "PTX %s", out.Version)
			}
		})
	}
}

// TestFromSIMTParses checks that what is printed passes the package's own
// parser and checker, and is the same tree.
func TestFromSIMTParses(t *testing.T) {
	for _, m := range simtSamples() {
		out, err := FromSIMT(m)
		require.NoError(t, err)
		text := out.String()
		back, err := Parse("k.ptx", []byte(text))
		require.NoError(t, err)
		require.Equal(t, text, back.String())
		_, err = Load("k.ptx", []byte(text))
		require.NoError(t, err)
	}
}

func simtSamples() []*simt.Module { return slices.Concat(simttest.Modules(), simttest.Operations()) }

// byVersion splits a module into one for each PTX version its kernels need.
func byVersion(m *simt.Module) []*simt.Module {
	var all []*simt.Module
	at := map[int]*simt.Module{}
	for _, k := range m.Kernels {
		one := &simt.Module{Arch: m.Arch, SM: m.SM, Kernels: []*simt.Kernel{k}}
		v := one.Version()
		if at[v] == nil {
			at[v] = &simt.Module{Arch: m.Arch, SM: m.SM}
			all = append(all, at[v])
		}
		at[v].Kernels = append(at[v].Kernels, k)
	}
	return all
}

func TestFromSIMTRefuses(t *testing.T) {
	k := simttest.WarpMMA()
	_, err := FromSIMT(&simt.Module{Arch: "sm_75", SM: 75, Kernels: []*simt.Kernel{k}})
	require.ErrorContains(t, err, "kernel warp_mma for sm_75: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 needs sm_80")
	_, err = FromSIMT(&simt.Module{Arch: "sm_80", SM: 80, Kernels: []*simt.Kernel{k, k}})
	require.ErrorContains(t, err, "two kernels are named warp_mma")
}

func BenchmarkFromSIMT(b *testing.B) {
	m := simttest.Modules()[3]
	simt.Clean(m.Kernels[0])
	b.ReportAllocs()
	for b.Loop() {
		out, err := FromSIMT(m)
		require.NoError(b, err)
		_ = out.String()
	}
}
