// A driver that does nothing but write down the calls that docs/launch.md's example makes.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

CUresult cuGetErrorString(CUresult, const char **) { return CUDA_SUCCESS; }
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *, int) { return CUDA_SUCCESS; }
CUresult cuCtxCreate(CUcontext *, unsigned, CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule *, const void *image) {
  std::printf("load %s\n", static_cast<const char *>(image));
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *name) {
  std::printf("kernel %s\n", name);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute which, int value) {
  std::printf("attribute %d %d\n", which, value);
  return CUDA_SUCCESS;
}

// Addresses are 1 << 32, 2 << 32, ...
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  static CUdeviceptr last;
  *address = last += 1ull << 32;
  std::printf("memory %llx %zu\n", *address, bytes);
  return CUDA_SUCCESS;
}

template <typename T> static void list(const T *values, int n) {
  std::printf(" [");
  for (int i = 0; i < n; i++) std::printf(i ? " %llu" : "%llu", static_cast<unsigned long long>(values[i]));
  std::printf("]");
}

// A map begins with its number, from 1.
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  static cuuint64_t last;
  std::memset(map, 0, sizeof *map);
  map->opaque[0] = ++last;
  std::printf("map %d at %llx type %d", static_cast<int>(last), reinterpret_cast<unsigned long long>(address), type);
  list(dims, rank), list(strides, rank - 1), list(box, rank), list(element_strides, rank);
  std::printf(" interleave %d swizzle %d promotion %d fill %d\n", interleave, swizzle, promotion, fill);
  return CUDA_SUCCESS;
}

// PARAM_BYTES are the bytes of each parameter, of which the first eight are printed.
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction, void **params, void **) {
  std::printf("launch %u %u %u by %u %u %u shared %u attributes %u\n", c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
              c->sharedMemBytes, c->numAttrs);
  char *at = std::getenv("PARAM_BYTES");
  for (int i = 0; *at; i++) {
    size_t bytes = std::strtoul(at, &at, 10);
    unsigned long long value = 0;
    std::memcpy(&value, params[i], bytes < 8 ? bytes : 8);
    std::printf("param %llu\n", value);
  }
  return CUDA_SUCCESS;
}
