// A block waits for two others at once, in one loop.
// launch: grid=3 block=32
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: (a & b) == 0 => (a | b) == 0
// slip deadlock: y[blockIdx.x] = 1; => y[2] = 1;
extern "C" __global__ void k(unsigned *x, volatile unsigned *y, unsigned *z)
{
    if (blockIdx.x > 0) {
        x[blockIdx.x * 32 + threadIdx.x] = threadIdx.x;
        __syncwarp();
        __threadfence(); /*release*/
        if (threadIdx.x == 0)
            y[blockIdx.x] = 1;
        return;
    }
    unsigned a, b;
    do {
        a = y[1];
        b = y[2];
    } while ((a & b) == 0);
    __threadfence(); /*acquire*/
    z[threadIdx.x] = x[32 + threadIdx.x] + x[64 + threadIdx.x];
}
