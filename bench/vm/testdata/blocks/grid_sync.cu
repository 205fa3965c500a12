// The barrier of a cooperative launch: block 0 adds what turns the counter's top bit over.
// launch: grid=4 block=64
// slip global-race: sync(y); /*read*/ =>
// slip global-race: __syncthreads(); /*before*/ =>
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: __syncthreads(); /*after*/ =>
// slip deadlock: gridDim.x - 1) => gridDim.x)
__device__ void sync(unsigned *arrived)
{
    __syncthreads(); /*before*/
    if (threadIdx.x == 0) {
        unsigned n = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence(); /*release*/
        unsigned old = atomicAdd(arrived, n);
        while (((old ^ *(volatile unsigned *)arrived) & 0x80000000u) == 0)
            ;
        __threadfence(); /*acquire*/
    }
    __syncthreads(); /*after*/
}

extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (unsigned r = 0; r < 3; r++) {
        x[i] = i + r;
        sync(y);
        z[i] += x[(i + 70) % n];
        sync(y); /*read*/
    }
}
