package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeastVersion(t *testing.T) {
	for _, tc := range []struct{ target, body, want string }{
		{"sm_80", "ret;", "7.0"},
		{"sm_80", ".reg .f32 f<2>; .reg .b32 r<2>; cvt.rna.satfinite.tf32.f32 r0, f1;", "8.1"},
		{"sm_90", "barrier.cluster.arrive.release;", "8.0"},
		{"sm_100a", "tcgen05.wait::ld.sync.aligned;", "8.6"},
		{"sm_100f", "tcgen05.wait::ld.sync.aligned;", "8.8"},
	} {
		m, err := Parse("t.ptx", []byte(".version 9.0\n.target "+tc.target+"\n.address_size 64\n.entry k() {"+tc.body+"}"))
		require.NoError(t, err)
		require.NoError(t, Resolve(m))
		v, err := LeastVersion(m)
		require.NoError(t, err)
		require.Equal(t, tc.want, v.String(), tc.body)
		require.Equal(t, Version{9, 0}, m.Version)
	}
	m, err := Parse("t.ptx", []byte(".version 9.0\n.target sm_80\n.entry k() { wgmma.fence.sync.aligned; }"))
	require.NoError(t, err)
	require.NoError(t, Resolve(m))
	_, err = LeastVersion(m)
	require.ErrorContains(t, err, "needs PTX 8.0 and sm_90a")
}

func TestLeastTarget(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"ret;", "sm_75"}, // not sm_10, which nothing takes any more
		{"cp.async.wait_all;", "sm_80"},
		{"barrier.cluster.arrive.release;", "sm_90"},
		{"wgmma.fence.sync.aligned;", "sm_90a"},
		{"tcgen05.wait::ld.sync.aligned;", "sm_100f"},
	} {
		m, err := Parse("t.ptx", []byte(".version 9.0\n.target sm_120a, debug\n.address_size 64\n.entry k() {"+tc.body+"}"))
		require.NoError(t, err)
		require.NoError(t, Resolve(m))
		least, err := LeastTarget(m)
		require.NoError(t, err)
		require.Equal(t, tc.want, least.String(), tc.body)
		require.Equal(t, []string{"sm_120a", "debug"}, m.Targets)
	}
}
