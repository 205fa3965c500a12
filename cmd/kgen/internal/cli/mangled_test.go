package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMangledNames(t *testing.T) {
	require.Equal(t, "kernel scale<float, 3>, line 4", plainNames("kernel _Z5scaleIfLi3EEvPT_PKS0_i, line 4"))
	require.Equal(t, "ns::plain (_ZN2ns5plainEPf), x", bothNames("_ZN2ns5plainEPf, x"))
	require.Equal(t, "_Zsomething and my_Zone", bothNames("_Zsomething and my_Zone"))
	for _, name := range []string{"scale", "scale<float, 3>", "scale<float,3>", "void scale<float, 3>(float*, float const*, int)"} {
		require.True(t, calledInSource("_Z5scaleIfLi3EEvPT_PKS0_i", name), name)
	}
	require.True(t, calledInSource("_ZN2ns5plainEPf", "plain"))
	require.True(t, calledInSource("_ZN2ns5plainEPf", "ns::plain"))
	require.False(t, calledInSource("_Z5scaleIfLi3EEvPT_PKS0_i", "scal"))
	require.False(t, calledInSource("scale", "scale"), "a name of PTX is no name of the source")
}
