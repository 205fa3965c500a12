// Two blocks have a tile together: one leaves its part, the other waits for it and adds.
// launch: grid=4 block=64
// slip global-race: __syncthreads(); /*written*/ =>
// slip global-race: red.release.gpu => red.relaxed.gpu
// slip global-race: ld.acquire.gpu => ld.relaxed.gpu
// slip global-race: __syncthreads(); /*waited*/ =>
// slip global-race: await(&y[tile], 1); =>
// slip deadlock: await(&y[tile], 1); => await(&y[tile], 2);
__device__ void await(unsigned *p, unsigned want)
{
    if (threadIdx.x == 0) {
        unsigned v;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
        while (v < want);
    }
    __syncthreads(); /*waited*/
}

extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    unsigned tile = blockIdx.x / 2, at = tile * 64 + threadIdx.x;
    if (blockIdx.x % 2 == 1) {
        x[at] = at * 3;
        __syncthreads(); /*written*/
        if (threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(&y[tile])) : "memory");
        return;
    }
    await(&y[tile], 1);
    z[at] = at + x[tile * 64 + 63 - threadIdx.x];
}
