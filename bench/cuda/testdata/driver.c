// A driver for tests: memory is the host's, and its kernels are functions of C that it
// knows by name. It holds its callers to the driver's rules: a context is current on the
// calling thread, images end in a NUL, much shared memory is asked for first.
#include <cuda.h>
#include <stdatomic.h>
#include <string.h>

// Under the names that a driver exports.
#define cuCtxCreate cuCtxCreate_v2
#define cuCtxDestroy cuCtxDestroy_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemsetD8 cuMemsetD8_v2
#define cuEventDestroy cuEventDestroy_v2

struct CUfunc_st {
	char name[64];
	int shared; // bytes allowed
};
struct CUevent_st {
	int polls;
	CUresult outcome;
};

static _Thread_local CUcontext current;
static int context;
static atomic_int live; // allocations, modules, events
static CUresult outcome; // of the last kernel

#define WANT_CONTEXT if (!current) return CUDA_ERROR_INVALID_CONTEXT

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int n) { *d = n; return n ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *name, int len, CUdevice d) { strncpy(name, "Test GPU", len); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 100000; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = 8; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = 0; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 108; break;
	default: *v = 1;
	}
	return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult r, const char **text) {
	*text = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "something is wrong";
	return CUDA_SUCCESS;
}
CUresult cuCtxCreate(CUcontext *c, unsigned flags, CUdevice d) { current = *c = (CUcontext)&context; outcome = CUDA_SUCCESS; return CUDA_SUCCESS; }
CUresult cuCtxDestroy(CUcontext c) { current = NULL; return live ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS; }

CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
	WANT_CONTEXT;
	if (n > 1 << 30) return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (n + 255) / 256 * 256);
	live++;
	return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) { WANT_CONTEXT; free((void *)(uintptr_t)p); live--; return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n) { WANT_CONTEXT; memcpy((void *)(uintptr_t)to, from, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n) { WANT_CONTEXT; memcpy(to, (void *)(uintptr_t)from, n); return CUDA_SUCCESS; }
CUresult cuMemsetD8(CUdeviceptr p, unsigned char v, size_t n) { WANT_CONTEXT; memset((void *)(uintptr_t)p, v, n); return CUDA_SUCCESS; }

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, CUjit_option *options, void **values) {
	WANT_CONTEXT;
	if (strstr(image, "sm_999")) {
		if (n == 2 && options[0] == CU_JIT_ERROR_LOG_BUFFER && (size_t)values[1] > 20) strcpy(values[0], "no such target\n");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*m = (CUmodule)strdup(image);
	live++;
	return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { WANT_CONTEXT; free(m); live--; return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	static struct CUfunc_st all[16];
	WANT_CONTEXT;
	if (!strstr((char *)m, name)) return CUDA_ERROR_NOT_FOUND;
	for (int i = 0; i < 16; i++) {
		if (*all[i].name && strcmp(all[i].name, name)) continue;
		strcpy(all[i].name, name);
		*f = &all[i];
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) { WANT_CONTEXT; *v = 1000; return CUDA_SUCCESS; }
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
	WANT_CONTEXT;
	if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
	f->shared = v;
	return CUDA_SUCCESS;
}

static void vecadd(void **p) {
	float *a = *(float **)p[0], *b = *(float **)p[1], *c = *(float **)p[2];
	for (int i = 0; i < *(int *)p[3]; i++) c[i] = a[i] + b[i];
}

// launched is what a launch's attributes say: the cluster's extents, and whether the kernel
// may start early.
struct launched {
	unsigned cluster[3];
	int early;
};

// echo(to, u8, u64, u32, map): what it was passed, one after the other.
static void echo(void **p, const struct launched *how) {
	char *to = *(char **)p[0];
	memcpy(to, p[1], 1);
	memcpy(to + 8, p[2], 8);
	memcpy(to + 16, p[3], 4);
	memcpy(to + 32, p[4], 128);
	memcpy(to + 160, how, 16);
}

static CUresult run(CUfunction f, unsigned shared, void **p, const struct launched *how) {
	WANT_CONTEXT;
	if (outcome != CUDA_SUCCESS) return CUDA_SUCCESS; // behind one that goes on, or did wrong
	if (shared + 1000 > 49152 && shared > f->shared) return CUDA_ERROR_INVALID_VALUE;
	if (!strcmp(f->name, "vecadd")) vecadd(p);
	else if (!strcmp(f->name, "echo")) echo(p, how);
	else if (!strcmp(f->name, "strays")) outcome = CUDA_ERROR_ILLEGAL_ADDRESS;
	else if (!strcmp(f->name, "endless")) outcome = CUDA_ERROR_NOT_READY;
	return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **p, void **extra) {
	if (!(gx && gy && gz && bx && by && bz)) return CUDA_ERROR_INVALID_VALUE;
	return run(f, shared, p, &(struct launched){0});
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **extra) {
	struct launched how = {0};
	for (unsigned i = 0; i < c->numAttrs; i++) {
		CUlaunchAttributeValue *v = &c->attrs[i].value;
		switch (c->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: memcpy(how.cluster, v, 12); break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: how.early = v->programmaticStreamSerializationAllowed; break;
		default: return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return run(f, c->sharedMemBytes, p, &how);
}

CUresult cuEventCreate(CUevent *e, unsigned flags) { WANT_CONTEXT; *e = calloc(1, sizeof **e); live++; return CUDA_SUCCESS; }
CUresult cuEventDestroy(CUevent e) { WANT_CONTEXT; free(e); live--; return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) { WANT_CONTEXT; e->outcome = outcome; return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent e) { WANT_CONTEXT; return e->polls++ < 2 ? CUDA_ERROR_NOT_READY : e->outcome; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { WANT_CONTEXT; *ms = 0.25f; return CUDA_SUCCESS; }

// A map is what it was made of.
CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
	if ((uintptr_t)map % 64) return CUDA_ERROR_INVALID_VALUE;
	cuuint64_t made[16] = {type, rank, (uintptr_t)address, dims[3], strides[2], lower[0], lower[1], upper[0], upper[1], channels, pixels, steps[2], interleave, swizzle, fill};
	memcpy(map, made, sizeof made);
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides, int lower, int upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
	if ((uintptr_t)map % 64) return CUDA_ERROR_INVALID_VALUE;
	cuuint64_t made[16] = {type, rank, (uintptr_t)address, dims[3], strides[2], lower, 0, upper, 0, channels, pixels, steps[2], interleave, swizzle, fill, mode};
	memcpy(map, made, sizeof made);
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
	if ((uintptr_t)map % 64) return CUDA_ERROR_INVALID_VALUE;
	cuuint64_t made[16] = {type, rank, (uintptr_t)address, dims[0], dims[1], strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, fill};
	memcpy(map, made, sizeof made);
	return CUDA_SUCCESS;
}
