// Sums of a whole grid in one launch: warps by shuffles, blocks through shared
// memory, and the last block to finish adds up what the others left.
template <typename T>
__device__ T warpSum(T v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}

template <typename T, int BLOCK>
__device__ T blockSum(T v)
{
    __shared__ T part[BLOCK / 32];
    v = warpSum(v);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < BLOCK / 32 ? part[threadIdx.x] : T(0);
    if (threadIdx.x < 32)
        v = warpSum(v);
    __syncthreads();
    return v;
}

template <typename T, int BLOCK>
__device__ void total(const T *in, int n, T *part, unsigned *done, T *out)
{
    __shared__ bool last;
    T v = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        v += in[i];
    v = blockSum<T, BLOCK>(v);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    v = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += BLOCK)
        v += part[i];
    v = blockSum<T, BLOCK>(v);
    if (threadIdx.x == 0)
        *out = v;
}

extern "C" __global__ void sumF32(const float *in, int n, float *part, unsigned *done, float *out) { total<float, 128>(in, n, part, done, out); }
extern "C" __global__ void sumF64(const double *in, int n, double *part, unsigned *done, double *out) { total<double, 64>(in, n, part, done, out); }
extern "C" __global__ void sumI64(const long long *in, int n, long long *part, unsigned *done, long long *out) { total<long long, 96>(in, n, part, done, out); }
