// The first block to come makes a table, the others wait for it.
// launch: grid=4 block=64
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: __syncthreads(); /*made*/ =>
// slip global-race: __syncthreads(); /*seen*/ =>
// slip global-race: while (*(volatile unsigned *)(y + 1) == 0) => while (*(y + 1) == 7)
extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    __shared__ unsigned was;
    if (threadIdx.x == 0)
        was = atomicCAS(y, 0, 1);
    __syncthreads(); /*first*/
    if (was == 0) {
        x[threadIdx.x] = threadIdx.x * 7;
        __syncthreads(); /*made*/
        if (threadIdx.x == 0) {
            __threadfence(); /*release*/
            *(volatile unsigned *)(y + 1) = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*(volatile unsigned *)(y + 1) == 0)
                ;
            __threadfence(); /*acquire*/
        }
        __syncthreads(); /*seen*/
    }
    z[blockIdx.x * 64 + threadIdx.x] = x[63 - threadIdx.x];
}
