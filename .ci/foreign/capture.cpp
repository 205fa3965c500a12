// A CUDA runtime that runs nothing: it keeps what a program allocates and copies,
// and writes the first launch of the kernel that it is asked for to a folder, from
// which cute.py makes a case. The program then ends.
//
// Environment: CAPTURE_KERNEL, a part of the kernel's name; CAPTURE_PARAMS, a file with
// a line for each kernel of the program's PTX, "NAME SIZE SIZE ..."; CAPTURE_DIR, the
// folder; CAPTURE_CC, the compute capability to answer, as in 90.
//
// launch.txt holds lines of words:
//   kernel NAME / grid X Y Z / block X Y Z / cluster X Y Z / shared BYTES
//   buffer INDEX BYTES                      contents in INDEX.bin; in order of allocation
//   param HEX                               one for each parameter
//   ref PARAM AT BUFFER OFFSET              an address within a parameter
//   map PARAM AT BUFFER OFFSET TYPE RANK DIMS... STRIDES... BOX... STEPS... INTERLEAVE SWIZZLE FILL
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

struct Allocation {
	uint64_t address, size;
	std::vector<char> bytes;
};

struct Launch {
	dim3 grid, block, cluster;
	size_t shared;
};

std::vector<Allocation> allocations;
std::vector<std::string> maps; // what a "map" line says after AT
Launch pending;

// Kernels are registered before this file's variables would be made.
std::map<const void *, std::string> &kernels() {
	static std::map<const void *, std::string> all;
	return all;
}

const uint64_t base = 0x300000000000;
const uint64_t mapMark = 0x6b67656e6d617020; // no address, no size

const char *need(const char *name) {
	const char *v = getenv(name);
	if (!v) {
		fprintf(stderr, "capture: %s is not set\n", name);
		exit(2);
	}
	return v;
}

Allocation *holds(uint64_t address) {
	for (auto &a : allocations)
		if (address >= a.address && address < a.address + a.size)
			return &a;
	return nullptr;
}

char *host(const void *p) {
	auto *a = holds(uint64_t(p));
	return a ? a->bytes.data() + (uint64_t(p) - a->address) : (char *)p;
}

std::string where(uint64_t address) {
	auto *a = holds(address);
	return std::to_string(a - allocations.data()) + " " + std::to_string(address - a->address);
}

std::vector<int> parameterSizes(const std::string &kernel) {
	std::ifstream in(need("CAPTURE_PARAMS"));
	for (std::string line; std::getline(in, line);) {
		std::istringstream words(line);
		std::string name;
		words >> name;
		std::vector<int> sizes;
		for (int n; words >> n;)
			sizes.push_back(n);
		if (name == kernel)
			return sizes;
	}
	fprintf(stderr, "capture: no sizes of the parameters of %s\n", kernel.c_str());
	exit(2);
}

void writeParameter(std::ostream &out, int i, const unsigned char *p, int size) {
	static const char digits[] = "0123456789abcdef";
	std::string hex;
	for (int k = 0; k < size; k++)
		hex += {digits[p[k] >> 4], digits[p[k] & 15]};
	out << "param " << hex << "\n";
	for (int at = 0; at + 8 <= size; at += 8) {
		uint64_t word[2] = {};
		memcpy(word, p + at, at + 16 <= size ? 16 : 8);
		if (word[0] == mapMark) {
			out << "map " << i << " " << at << " " << maps[word[1]] << "\n";
			at += sizeof(CUtensorMap) - 8;
		} else if (holds(word[0]))
			out << "ref " << i << " " << at << " " << where(word[0]) << "\n";
	}
}

void dim(std::ostream &out, const char *name, dim3 d) {
	out << name << " " << d.x << " " << d.y << " " << d.z << "\n";
}

cudaError_t launch(const void *f, const Launch &l, void **args) {
	const std::string &name = kernels()[f];
	if (name.find(need("CAPTURE_KERNEL")) == std::string::npos)
		return cudaSuccess;
	std::string dir = need("CAPTURE_DIR");
	std::ofstream out(dir + "/launch.txt");
	out << "kernel " << name << "\n";
	dim(out, "grid", l.grid);
	dim(out, "block", l.block);
	dim(out, "cluster", l.cluster);
	out << "shared " << l.shared << "\n";
	for (size_t i = 0; i < allocations.size(); i++) {
		auto &a = allocations[i];
		out << "buffer " << i << " " << a.size << "\n";
		std::ofstream(dir + "/" + std::to_string(i) + ".bin", std::ios::binary).write(a.bytes.data(), a.bytes.size());
	}
	auto sizes = parameterSizes(name);
	for (size_t i = 0; i < sizes.size(); i++)
		writeParameter(out, i, (const unsigned char *)args[i], sizes[i]);
	out.close();
	fflush(nullptr);
	_exit(out ? 0 : 1);
}

CUresult encodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
                     const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
	if (!holds(uint64_t(address)))
		return CUDA_ERROR_INVALID_VALUE;
	std::ostringstream out;
	out << where(uint64_t(address)) << " " << type << " " << rank;
	for (cuuint32_t i = 0; i < rank; i++)
		out << " " << dims[i];
	for (cuuint32_t i = 0; i + 1 < rank; i++)
		out << " " << strides[i];
	for (cuuint32_t i = 0; i < rank; i++)
		out << " " << box[i];
	for (cuuint32_t i = 0; i < rank; i++)
		out << " " << steps[i];
	out << " " << interleave << " " << swizzle << " " << fill;
	uint64_t words[16] = {mapMark, maps.size()};
	memcpy(map, words, sizeof *map);
	maps.push_back(out.str());
	return CUDA_SUCCESS;
}

CUresult driverVersion(int *v) {
	*v = CUDA_VERSION;
	return CUDA_SUCCESS;
}

} // namespace

extern "C" {

// What the code that nvcc adds calls.
void **__cudaRegisterFatBinary(void *) {
	static void *handle;
	return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterFunction(void **, const char *f, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {
	kernels()[f] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *) {
	pending = {grid, block, dim3(1, 1, 1), shared};
	return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *) {
	*grid = pending.grid, *block = pending.block, *shared = pending.shared;
	return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *k, const void *f) {
	*k = (cudaKernel_t)f;
	return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t) {
	return launch((const void *)f, {grid, block, dim3(1, 1, 1), shared}, args);
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t) {
	return launch(f, {grid, block, dim3(1, 1, 1), shared}, args);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args) {
	Launch l = {c->gridDim, c->blockDim, dim3(1, 1, 1), c->dynamicSmemBytes};
	for (unsigned i = 0; i < c->numAttrs; i++)
		if (c->attrs[i].id == cudaLaunchAttributeClusterDimension) {
			auto &d = c->attrs[i].val.clusterDim;
			l.cluster = dim3(d.x, d.y, d.z);
		}
	return launch(f, l, args);
}

cudaError_t cudaMalloc(void **p, size_t size) {
	uint64_t at = base;
	if (!allocations.empty())
		at = (allocations.back().address + allocations.back().size + 4096 + 255) & ~uint64_t(255);
	allocations.push_back({at, size, std::vector<char>(size)});
	*p = (void *)at;
	return cudaSuccess;
}
cudaError_t cudaFree(void *) { return cudaSuccess; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind) {
	memcpy(host(to), host(from), n);
	return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind k, cudaStream_t) { return cudaMemcpy(to, from, n, k); }
cudaError_t cudaMemset(void *p, int v, size_t n) {
	memset(host(p), v, n);
	return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t) { return cudaMemset(p, v, n); }
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
	*left = *all = size_t(64) << 30;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *d) {
	*d = 0;
	return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *n) {
	*n = 1;
	return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) {
	int cc = atoi(need("CAPTURE_CC"));
	memset(p, 0, sizeof *p);
	p->major = cc / 10, p->minor = cc % 10, p->multiProcessorCount = 132, p->warpSize = 32;
	return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int) {
	int cc = atoi(need("CAPTURE_CC"));
	switch (a) {
	case cudaDevAttrComputeCapabilityMajor: *v = cc / 10; break;
	case cudaDevAttrComputeCapabilityMinor: *v = cc % 10; break;
	case cudaDevAttrMultiProcessorCount: *v = 132; break;
	case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 << 10; break;
	case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
	case cudaDevAttrMaxGridDimX: *v = 0x7fffffff; break;
	default: *v = 0;
	}
	return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *) {
	memset(a, 0, sizeof *a);
	a->ptxVersion = a->binaryVersion = atoi(need("CAPTURE_CC"));
	a->maxThreadsPerBlock = 1024;
	return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *, int, size_t, unsigned) {
	*n = 1;
	return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *found) {
	*f = !strcmp(name, "cuTensorMapEncodeTiled") ? (void *)encodeTiled : !strcmp(name, "cuDriverGetVersion") ? (void *)driverVersion : nullptr;
	if (found)
		*found = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long, cudaDriverEntryPointQueryResult *found) {
	return cudaGetDriverEntryPointByVersion(name, f, 0, 0, found);
}
cudaError_t cudaRuntimeGetVersion(int *v) {
	*v = CUDART_VERSION;
	return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *v) { return cudaRuntimeGetVersion(v); }

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }
const char *cudaGetErrorName(cudaError_t) { return "an error"; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) {
	*e = nullptr;
	return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { return cudaEventCreate(e); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
	*ms = 1;
	return cudaSuccess;
}
}
