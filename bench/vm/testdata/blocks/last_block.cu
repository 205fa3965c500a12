// The block that comes last adds up what all have left, and clears the counter.
// launch: grid=5 block=64
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*release*/ => __threadfence_block();
// slip global-race: __syncthreads(); /*all*/ =>
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: gridDim.x - 1; => gridDim.x - 2;
extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    __shared__ bool last;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i * i;
    __threadfence(); /*release*/
    __syncthreads(); /*all*/
    if (threadIdx.x == 0)
        last = atomicAdd(y, 1) == gridDim.x - 1;
    __syncthreads(); /*told*/
    if (!last)
        return;
    __threadfence(); /*acquire*/
    unsigned sum = 0;
    for (unsigned b = 0; b < gridDim.x; b++)
        sum += x[b * blockDim.x + threadIdx.x];
    z[threadIdx.x] = sum;
    if (threadIdx.x == 0)
        *y = 0;
}
