// Sums of all before, twice: up and down a tree in shared memory, and over
// many blocks in one launch, each looking back at what those before it found.

#define PAD(i) ((i) + ((i) >> 5))

extern "C" __global__ void scanTree(const int *in, int *out, int n)
{
    extern __shared__ int t[];
    int m = 2 * blockDim.x, id = threadIdx.x;
    t[PAD(2 * id)] = 2 * id < n ? in[2 * id] : 0;
    t[PAD(2 * id + 1)] = 2 * id + 1 < n ? in[2 * id + 1] : 0;
    int step = 1;
    for (int d = m >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (id < d)
            t[PAD(step * (2 * id + 2) - 1)] += t[PAD(step * (2 * id + 1) - 1)];
        step *= 2;
    }
    if (id == 0)
        t[PAD(m - 1)] = 0;
    for (int d = 1; d < m; d *= 2) {
        step >>= 1;
        __syncthreads();
        if (id < d) {
            int a = PAD(step * (2 * id + 1) - 1), b = PAD(step * (2 * id + 2) - 1);
            int v = t[a];
            t[a] = t[b];
            t[b] += v;
        }
    }
    __syncthreads();
    if (2 * id < n)
        out[2 * id] = t[PAD(2 * id)];
    if (2 * id + 1 < n)
        out[2 * id + 1] = t[PAD(2 * id + 1)];
}

__device__ int warpScan(int v)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int o = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += o;
    }
    return v;
}

// status: 0 nothing yet, 1 the block's own sum, 2 the sum up to it.
extern "C" __global__ void scanLookBack(const int *in, int *out, int n, volatile int *status, volatile int *sums, volatile int *prefixes, int *ticket)
{
    __shared__ int warps[32];
    __shared__ int block, before;
    if (threadIdx.x == 0)
        block = atomicAdd(ticket, 1);
    __syncthreads();
    int i = block * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    int s = warpScan(v);
    if ((threadIdx.x & 31) == 31)
        warps[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        int w = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
        warps[threadIdx.x] = warpScan(w);
    }
    __syncthreads();
    if (threadIdx.x >= 32)
        s += warps[(threadIdx.x >> 5) - 1];
    if (threadIdx.x == blockDim.x - 1) {
        sums[block] = s;
        __threadfence();
        status[block] = 1;
        int sum = 0;
        for (int b = block - 1; b >= 0;) {
            int st = status[b];
            if (st == 0)
                continue;
            __threadfence();
            if (st == 2) {
                sum += prefixes[b];
                break;
            }
            sum += sums[b];
            b--;
        }
        before = sum;
        prefixes[block] = sum + s;
        __threadfence();
        status[block] = 2;
    }
    __syncthreads();
    if (i < n)
        out[i] = before + s - v;
}
