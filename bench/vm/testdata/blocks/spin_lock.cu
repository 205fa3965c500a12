// One thread of each block adds to plain numbers under a lock.
// launch: grid=4 block=32
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*acquire*/ => __threadfence_block();
// slip global-race: __threadfence(); /*release*/ => __threadfence_block();
// slip global-race: atomicExch(y, 0); => *y = 0;
// slip global-race: atomicCAS(y, 0, 1) => atomicCAS(y, 0, 0)
// slip deadlock: atomicExch(y, 0); => atomicExch(y, 1);
extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    if (threadIdx.x > 0)
        return;
    for (int r = 0; r < 2; r++) {
        while (atomicCAS(y, 0, 1) != 0)
            ;
        __threadfence(); /*acquire*/
        x[0] = x[0] * 3 + blockIdx.x;
        x[1] += 1;
        __threadfence(); /*release*/
        atomicExch(y, 0);
    }
}
