package ncu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	require.Equal(t, []string{
		"gemm<float, 128>", "gemm<float, 64>", "device_kernel<enable_sm90<FlashFwd<Mainloop<2>>>>", "add", "scale<4>", "scale<4> (2)",
	}, distinct([]string{
		"void ns::gemm<float, 128>(T1 *, T2)", "void ns::gemm<float, 64>(T1 *, T2)", "void cutlass::device_kernel<flash::enable_sm90<flash::FlashFwd<flash::Mainloop<2>>>>(T1::Params)",
		"(anonymous namespace)::add(float *)", "void scale<4>(float *)", "void other::scale<4>(double *)",
	}))
}
