// All blocks meet at a counter that only grows, twice a round: when all have written, and
// when all have read.
// launch: grid=4 block=64
// slip global-race: meet(++round, y); /*read*/ =>
// slip global-race: __syncthreads(); /*before*/ =>
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: __threadfence(); /*release*/ => __threadfence_block();
// slip global-race: __syncthreads(); /*after*/ =>
// slip global-race: round * gridDim.x => round * gridDim.x - 1
// slip deadlock: round * gridDim.x => round * gridDim.x + 1
__device__ void meet(unsigned round, unsigned *count)
{
    __syncthreads(); /*before*/
    if (threadIdx.x == 0) {
        __threadfence(); /*release*/
        atomicAdd(count, 1);
        while (*(volatile unsigned *)count < round * gridDim.x)
            ;
        __threadfence(); /*acquire*/
    }
    __syncthreads(); /*after*/
}

extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, round = 0;
    unsigned next = (blockIdx.x + 1) % gridDim.x * blockDim.x + (threadIdx.x + 5) % blockDim.x;
    for (unsigned r = 0; r < 3; r++) {
        x[i] = i + r;
        meet(++round, y);
        z[i] += x[next];
        meet(++round, y); /*read*/
    }
}
