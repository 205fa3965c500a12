// CUB's block and warp primitives, each as a kernel: what cub.py compiles with NVRTC.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

constexpr int threads = 128, items = 4;

template <cub::BlockScanAlgorithm how>
__device__ void scan(const int *in, int *out, int *totals) {
	using Scan = cub::BlockScan<int, threads, how>;
	__shared__ typename Scan::TempStorage temp;
	int v[items], total, base = (blockIdx.x * threads + threadIdx.x) * items;
	for (int i = 0; i < items; i++)
		v[i] = in[base + i];
	Scan(temp).ExclusiveSum(v, v, total);
	for (int i = 0; i < items; i++)
		out[base + i] = v[i];
	if (threadIdx.x == 0)
		totals[blockIdx.x] = total;
}

extern "C" __global__ void scan_raking(const int *in, int *out, int *totals) { scan<cub::BLOCK_SCAN_RAKING>(in, out, totals); }
extern "C" __global__ void scan_raking_memoize(const int *in, int *out, int *totals) { scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, out, totals); }
extern "C" __global__ void scan_warps(const int *in, int *out, int *totals) { scan<cub::BLOCK_SCAN_WARP_SCANS>(in, out, totals); }

struct Larger {
	__device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

extern "C" __global__ void scan_running_maximum(const float *in, float *out) {
	using Scan = cub::BlockScan<float, threads>;
	__shared__ typename Scan::TempStorage temp;
	float v = in[blockIdx.x * threads + threadIdx.x];
	Scan(temp).InclusiveScan(v, v, Larger());
	out[blockIdx.x * threads + threadIdx.x] = v;
}

template <class Key>
__device__ void load(const Key *in, Key (&v)[items]) {
	for (int i = 0; i < items; i++)
		v[i] = in[(blockIdx.x * threads + threadIdx.x) * items + i];
}

extern "C" __global__ void sort_keys(const unsigned *in, unsigned *out) {
	using Sort = cub::BlockRadixSort<unsigned, threads, items>;
	__shared__ typename Sort::TempStorage temp;
	unsigned v[items];
	load(in, v);
	Sort(temp).Sort(v);
	for (int i = 0; i < items; i++)
		out[(blockIdx.x * threads + threadIdx.x) * items + i] = v[i];
}

extern "C" __global__ void sort_pairs_descending(const float *keys, const int *values, float *outKeys, int *outValues) {
	using Sort = cub::BlockRadixSort<float, threads, items, int>;
	__shared__ typename Sort::TempStorage temp;
	float k[items];
	int v[items];
	load(keys, k);
	load(values, v);
	Sort(temp).SortDescendingBlockedToStriped(k, v);
	for (int i = 0; i < items; i++) {
		outKeys[blockIdx.x * threads * items + i * threads + threadIdx.x] = k[i];
		outValues[blockIdx.x * threads * items + i * threads + threadIdx.x] = v[i];
	}
}

template <cub::BlockReduceAlgorithm how>
__device__ void reduce(const float *in, float *out, int valid) {
	using Reduce = cub::BlockReduce<float, threads, how>;
	__shared__ typename Reduce::TempStorage temp;
	float v = threadIdx.x < valid ? in[blockIdx.x * threads + threadIdx.x] : 0;
	float sum = Reduce(temp).Sum(v, valid);
	if (threadIdx.x == 0)
		out[blockIdx.x] = sum;
}

extern "C" __global__ void reduce_raking(const float *in, float *out, int valid) { reduce<cub::BLOCK_REDUCE_RAKING>(in, out, valid); }
extern "C" __global__ void reduce_raking_commutative(const float *in, float *out, int valid) { reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, out, valid); }
extern "C" __global__ void reduce_warps(const float *in, float *out, int valid) { reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out, valid); }

extern "C" __global__ void warp_sum(const int *in, int *out) {
	using Reduce = cub::WarpReduce<int>;
	__shared__ typename Reduce::TempStorage temp[threads / 32];
	int sum = Reduce(temp[threadIdx.x / 32]).Sum(in[blockIdx.x * threads + threadIdx.x]);
	if (threadIdx.x % 32 == 0)
		out[(blockIdx.x * threads + threadIdx.x) / 32] = sum;
}

extern "C" __global__ void half_warp_largest(const float *in, float *out, int valid) {
	using Reduce = cub::WarpReduce<float, 16>;
	__shared__ typename Reduce::TempStorage temp[threads / 16];
	float most = Reduce(temp[threadIdx.x / 16]).Reduce(in[blockIdx.x * threads + threadIdx.x], Larger(), valid);
	if (threadIdx.x % 16 == 0)
		out[(blockIdx.x * threads + threadIdx.x) / 16] = most;
}

extern "C" __global__ void warp_segments(const int *in, const int *heads, int *out) {
	using Reduce = cub::WarpReduce<int>;
	__shared__ typename Reduce::TempStorage temp[threads / 32];
	int at = blockIdx.x * threads + threadIdx.x;
	int sum = Reduce(temp[threadIdx.x / 32]).HeadSegmentedSum(in[at], heads[at]);
	out[at] = heads[at] || threadIdx.x % 32 == 0 ? sum : 0;
}
