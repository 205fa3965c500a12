// Blocks count bytes in shared memory; equal bytes of a warp are counted once
// for all by their first lane.
extern "C" __global__ void histogram(const unsigned char *data, int n, unsigned *bins)
{
    __shared__ unsigned mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned active = __activemask();
        unsigned same = __match_any_sync(active, (unsigned)data[i]);
        if (__ffs(same) - 1 == (threadIdx.x & 31))
            atomicAdd(&mine[data[i]], __popc(same));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (mine[i])
            atomicAdd(&bins[i], mine[i]);
}
