// Blocks add to a tile in order of their numbers, each when the one before has.
// launch: grid=4 block=64
// slip global-race: ld.acquire.gpu => ld.relaxed.gpu
// slip global-race: st.release.gpu => st.relaxed.gpu
// slip global-race: st.release.gpu => st.release.cta
// slip global-race: __syncthreads(); /*added*/ =>
// slip deadlock: blockIdx.x + 1 => blockIdx.x + 2
extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    unsigned state = ~0u;
    while (__syncthreads_and(state != blockIdx.x))
        if (threadIdx.x == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(state) : "l"(__cvta_generic_to_global(y)) : "memory");
    x[threadIdx.x] = x[threadIdx.x] * 5 + blockIdx.x;
    __syncthreads(); /*added*/
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(y)), "r"(blockIdx.x + 1) : "memory");
}
