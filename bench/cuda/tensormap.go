//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
#include <string.h>

// tensor is what all kinds of tensor maps are made of.
typedef struct {
	int type, rank, swizzle, fill;
	CUdeviceptr address;
	cuuint64_t dims[5], strides[5];
	cuuint32_t steps[5];
} tensor;

// tiled, im2col and wide encode into bytes of any alignment.
static CUresult tiled(void *to, const tensor *t, const cuuint32_t *box) {
	CUtensorMap map;
	CUresult r = cuTensorMapEncodeTiled(&map, t->type, t->rank, (void *)(uintptr_t)t->address, t->dims, t->strides, box, t->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, t->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, t->fill);
	if (r == CUDA_SUCCESS) memcpy(to, &map, sizeof map);
	return r;
}

static CUresult im2col(void *to, const tensor *t, const int *lower, const int *upper, unsigned channels, unsigned pixels) {
	CUtensorMap map;
	CUresult r = cuTensorMapEncodeIm2col(&map, t->type, t->rank, (void *)(uintptr_t)t->address, t->dims, t->strides, lower, upper, channels, pixels, t->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, t->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, t->fill);
	if (r == CUDA_SUCCESS) memcpy(to, &map, sizeof map);
	return r;
}

static CUresult wide(void *to, const tensor *t, int lower, int upper, unsigned channels, unsigned pixels) {
	CUtensorMap map;
	CUresult r = cuTensorMapEncodeIm2colWide(&map, t->type, t->rank, (void *)(uintptr_t)t->address, t->dims, t->strides, lower, upper, channels, pixels, t->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, t->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, t->fill);
	if (r == CUDA_SUCCESS) memcpy(to, &map, sizeof map);
	return r;
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/codegen/ptx"
)

// mapTypes are the numbers of tensor maps' element types.
var mapTypes = map[ptx.Type]C.int{
	ptx.U8: C.CU_TENSOR_MAP_DATA_TYPE_UINT8, ptx.U16: C.CU_TENSOR_MAP_DATA_TYPE_UINT16,
	ptx.U32: C.CU_TENSOR_MAP_DATA_TYPE_UINT32, ptx.S32: C.CU_TENSOR_MAP_DATA_TYPE_INT32,
	ptx.U64: C.CU_TENSOR_MAP_DATA_TYPE_UINT64, ptx.S64: C.CU_TENSOR_MAP_DATA_TYPE_INT64,
	ptx.F16: C.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, ptx.F32: C.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
	ptx.F64: C.CU_TENSOR_MAP_DATA_TYPE_FLOAT64, ptx.BF16: C.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
	ptx.TF32: C.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, ptx.B4x16: C.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
	ptx.B4x16P64: C.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, ptx.B6x16P32: C.CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
}

// swizzle is a way to swizzle a tensor map's rows.
type swizzle struct {
	bytes, atom int
	flip        bool
}

var swizzles = map[swizzle]C.int{
	{}:                                 C.CU_TENSOR_MAP_SWIZZLE_NONE,
	{bytes: 32}:                        C.CU_TENSOR_MAP_SWIZZLE_32B,
	{bytes: 64}:                        C.CU_TENSOR_MAP_SWIZZLE_64B,
	{bytes: 128}:                       C.CU_TENSOR_MAP_SWIZZLE_128B,
	{bytes: 128, atom: 32}:             C.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
	{bytes: 128, atom: 32, flip: true}: C.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
	{bytes: 128, atom: 64}:             C.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
}

// encodeTensorMap has the driver encode a tensor map.
func encodeTensorMap(t *bench.TensorMap) ([]byte, error) {
	typ, ok := mapTypes[t.Type]
	if !ok {
		return nil, fmt.Errorf("tensor map of .%s: want a type of tensor maps", t.Type)
	}
	s := swizzle{t.Swizzle, t.Atom, t.Flip}
	if s.atom == 16 {
		s.atom = 0
	}
	mode, ok := swizzles[s]
	if !ok {
		return nil, fmt.Errorf("tensor map with a swizzle of %d bytes in atoms of %d, flipped: %t: want 0, 32, 64 or 128 bytes, and atoms of 32 or 64 in 128 alone", t.Swizzle, t.Atom, t.Flip)
	}
	rank := len(t.Dims)
	if rank < 1 || rank > 5 || t.Im2col == nil && len(t.Box) != rank || len(t.Strides) != rank-1 {
		return nil, fmt.Errorf("tensor map of %d dimensions, %d box extents, %d strides: want 1 to 5 dimensions, as many extents, one stride fewer", rank, len(t.Box), len(t.Strides))
	}
	c := C.tensor{_type: typ, rank: C.int(rank), swizzle: mode, fill: C.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, address: C.CUdeviceptr(t.Address)}
	for i := range rank {
		c.dims[i], c.steps[i] = C.cuuint64_t(t.Dims[i]), 1
		if t.ElementStrides != nil {
			c.steps[i] = C.cuuint32_t(t.ElementStrides[i])
		}
		if i > 0 {
			c.strides[i-1] = C.cuuint64_t(t.Strides[i-1])
		}
	}
	if t.FillNaN {
		c.fill = C.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
	}
	out := make([]byte, C.sizeof_CUtensorMap)
	if t.Im2col != nil {
		return out, encodeIm2col(out, &c, t.Im2col)
	}
	var box [5]C.cuuint32_t
	for i, n := range t.Box {
		box[i] = C.cuuint32_t(n)
	}
	return out, failed("cuTensorMapEncodeTiled", C.tiled(unsafe.Pointer(&out[0]), &c, &box[0]))
}

// encodeIm2col encodes a map of pixels; one along W alone is of mode W, which
// .im2col::w takes.
func encodeIm2col(out []byte, t *C.tensor, m *bench.Im2col) error {
	n := m.Corners(int(t.rank))
	if n < 1 || len(m.Lower) != n || len(m.Upper) != n {
		return fmt.Errorf("im2col map of %d dimensions with %d lower and %d upper corners: want 3 to 5 dimensions, and %d of both", int(t.rank), len(m.Lower), len(m.Upper), max(n, 1))
	}
	var lower, upper [3]C.int
	for i := range n {
		lower[i], upper[i] = C.int(m.Lower[i]), C.int(m.Upper[i])
	}
	channels, pixels := C.uint(m.Channels), C.uint(m.Pixels)
	if m.Wide {
		return failed("cuTensorMapEncodeIm2colWide", C.wide(unsafe.Pointer(&out[0]), t, lower[0], upper[0], channels, pixels))
	}
	return failed("cuTensorMapEncodeIm2col", C.im2col(unsafe.Pointer(&out[0]), t, &lower[0], &upper[0], channels, pixels))
}
