// Block 0 makes what block 1 takes, by way of four slots.
// launch: grid=2 block=64
// slip global-race: st.release.gpu => st.relaxed.gpu
// slip global-race: ld.acquire.gpu => ld.relaxed.gpu
// slip global-race: ld.acquire.gpu => ld.acquire.cta
// slip global-race: await(&y[32], i, 3); => await(&y[32], i, 4);
// slip global-race: await(&y[32], i, 3); =>
// slip global-race: sum += x[at]; tell(&y[32], i + 1); => tell(&y[32], i + 1); sum += x[at];
// slip global-race: __syncthreads(); /*slot*/ =>
// slip global-race: __syncthreads(); /*told*/ =>
// slip deadlock: await(&y[0], i + 1, 0); => await(&y[0], i + 2, 0);
__device__ void await(unsigned *p, unsigned i, unsigned room)
{
    if (threadIdx.x == 0) {
        unsigned v;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
        while (v + room < i);
    }
    __syncthreads(); /*slot*/
}

__device__ void tell(unsigned *p, unsigned v)
{
    __syncthreads(); /*told*/
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}

extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 12; i++) {
        unsigned at = i % 4 * 64 + (threadIdx.x + blockIdx.x * 40) % 64;
        if (blockIdx.x == 0) {
            await(&y[32], i, 3);
            x[at] = i * threadIdx.x;
            tell(&y[0], i + 1);
        } else {
            await(&y[0], i + 1, 0);
            sum += x[at]; tell(&y[32], i + 1);
        }
    }
    z[blockIdx.x * 64 + threadIdx.x] = sum;
}
