// All blocks meet at a barrier made of an atomic counter and a flag that turns
// over, between sweeps of smoothing over a ring.
__device__ void meet(unsigned *count, volatile unsigned *sense)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned was = *sense;
        __threadfence();
        if (atomicAdd(count, 1) == gridDim.x - 1) {
            *count = 0;
            __threadfence();
            *sense = was + 1;
        } else {
            while (*sense == was)
                ;
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void sweeps(int *a, int *b, int n, int times, unsigned *count, unsigned *sense)
{
    for (int s = 0; s < times; s++) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            b[i] = a[(i + n - 1) % n] + a[i] * 2 + a[(i + 1) % n];
        meet(count, sense);
        int *t = a;
        a = b;
        b = t;
    }
}
