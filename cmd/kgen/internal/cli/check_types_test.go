package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/bench/numcheck"
)

func TestParameterTypes(t *testing.T) {
	require.Equal(t, []string{"float const*", "double*", "int"}, parameterTypes("_Z3addPKfPdi", ""))
	require.Equal(t, []string{"float*", "unsigned short const*"}, parameterTypes("_ZN2ns1kIfLi4EEEvPT_PKt", ""))
	require.Equal(t, []string{"const float* __restrict__ ", "unsigned long long *", "int "}, parameterTypes("add", "extern \"C\" __global__ void add(const float* __restrict__ x,\n  unsigned long long *y, int n) {"))
	require.Nil(t, parameterTypes("add", "no such kernel"))
	for parameter, want := range map[string]string{
		"float const*": "float", "const float* __restrict__ ": "float", "unsigned long long *": "unsignedlonglong", "long int*": "long", "unsigned int*": "unsigned", "int*": "int",
	} {
		to, ok := pointee(parameter)
		require.True(t, ok)
		require.Equal(t, want, to)
	}
	for _, parameter := range []string{"int", "float**", "float"} {
		_, ok := pointee(parameter)
		require.False(t, ok, parameter)
	}
}

func TestCheckTypes(t *testing.T) {
	check := func(kernel string, types ...numcheck.Type) error {
		c := &bench.Case{Launches: []bench.CaseLaunch{{}}}
		var given []string
		for i, typ := range types {
			c.Buffers = append(c.Buffers, bench.CaseBuffer{Type: typ})
			c.Launches[0].Args = append(c.Launches[0].Args, bench.CaseArg{Buffer: i, Kind: "buffer"})
			given = append(given, typ.String()+"[100]:random")
		}
		return checkTypes(c, given, kernel, "")
	}
	require.EqualError(t, check("_Z1kPKfPf", numcheck.F32, numcheck.F64), "--arg f64[100]:random: k points to float there: want f32, not f64")
	require.EqualError(t, check("_Z1kPi", numcheck.F32), "--arg f32[100]:random: k points to int there: want i32 or u32, not f32")
	require.NoError(t, check("_Z1kPKfPf", numcheck.F32, numcheck.F32))
	require.NoError(t, check("_Z1kPtPjPh", numcheck.BF16, numcheck.I32, numcheck.E4M3))
	require.NoError(t, check("_Z1kP6float4Pv", numcheck.F32, numcheck.F64)) // no type of one element
	require.NoError(t, check("k", numcheck.F64))                            // nobody tells
	require.NoError(t, check("_Z1kPf", numcheck.F64, numcheck.F64))         // the launch says what is wrong
}
