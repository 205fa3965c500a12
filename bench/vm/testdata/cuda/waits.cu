// Threads that wait for one another in memory, in every way but by barriers,
// and what they may rely on.

// Lane k of each warp goes when its neighbour above has gone.
extern "C" __global__ void lanes(int *out)
{
    __shared__ volatile int turn[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        turn[warp] = 31;
    __syncwarp();
    while (turn[warp] != lane)
        ;
    __threadfence_block();
    out[threadIdx.x] = lane == 31 ? 1 : 3 * out[threadIdx.x + 1] + lane;
    __threadfence_block();
    turn[warp] = lane - 1;
}

// The way out of the loop lies in both branches of one.
extern "C" __global__ void bothWays(volatile int *flag, int *out)
{
    int tries = 0;
    for (;;) {
        if (threadIdx.x & 1) {
            if (flag[threadIdx.x - 1])
                break;
            tries++;
        } else {
            __threadfence();
            flag[threadIdx.x] = 1;
            break;
        }
    }
    out[threadIdx.x] = tries < 0 ? -1 : (int)threadIdx.x;
}

// Warps hand a number round through shared memory, rounds times.
extern "C" __global__ void ring(int *out, int rounds)
{
    __shared__ volatile int token;
    __shared__ int value;
    int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (threadIdx.x == 0) {
        token = 0;
        value = 1;
    }
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x % 32 == 0) {
            while (token != r * warps + warp)
                __nanosleep(20);
            __threadfence_block();
            value = value * 3 + warp;
            __threadfence_block();
            token = r * warps + warp + 1;
        }
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = value;
}

// Blocks go in order from the last to the first: all must be resident.
extern "C" __global__ void chain(int *turn, int *out)
{
    if (threadIdx.x == 0) {
        while (atomicAdd(turn, 0) != gridDim.x - 1 - blockIdx.x)
            ;
        __threadfence();
    }
    __syncthreads();
    int to = blockIdx.x * blockDim.x + threadIdx.x;
    out[to] = (blockIdx.x + 1 < gridDim.x ? out[to + blockDim.x] : 0) + threadIdx.x + 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(turn, 1);
}

// The block that comes last adds up what the others have left.
extern "C" __global__ void last(const int *in, int *part, unsigned *count, int *out, int n)
{
    __shared__ int sum;
    __shared__ bool isLast;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&sum, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        isLast = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!isLast)
        return;
    __threadfence();
    int total = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x)
        total += ((volatile int *)part)[b];
    for (int d = 16; d > 0; d /= 2)
        total += __shfl_xor_sync(~0u, total, d);
    if (threadIdx.x == 0)
        *out = total;
}

// A lane makes what its mates wait for inside a function that they are in too.
__device__ __noinline__ int await(volatile int *box, int lane)
{
    if (lane == 17) {
        __threadfence();
        *box = 5;
    }
    int v;
    do
        v = *box;
    while (v == 0);
    return v + lane;
}

extern "C" __global__ void inFunction(volatile int *box, int *out) { out[threadIdx.x] = await(box, threadIdx.x); }

// A long count, as long as a second thread does not stop it.
extern "C" __global__ void counts(volatile int *stop, unsigned *out, unsigned n)
{
    unsigned x = threadIdx.x, turns = 0;
    if (threadIdx.x == blockDim.x - 1) {
        for (unsigned i = 0; i < n; i++)
            x = x * 1664525u + 1013904223u;
        out[threadIdx.x] = x;
        __threadfence();
        *stop = 1;
        return;
    }
    while (!*stop)
        turns++;
    out[threadIdx.x] = turns > 0 || *stop ? 1 : 0;
}
