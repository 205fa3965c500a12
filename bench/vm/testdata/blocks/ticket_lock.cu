// The same under a lock that goes to who asked first, and a block whose threads work in it.
// launch: grid=4 block=64
// slip global-race: __threadfence(); /*acquire*/ =>
// slip global-race: __threadfence(); /*release*/ =>
// slip global-race: __syncthreads(); /*in*/ =>
// slip global-race: __syncthreads(); /*out*/ =>
// slip deadlock: y[1] = mine + 1; => y[1] = mine;
extern "C" __global__ void k(unsigned *x, volatile unsigned *y, unsigned *z)
{
    for (int r = 0; r < 2; r++) {
        unsigned mine = 0, serving;
        if (threadIdx.x == 0) {
            mine = atomicAdd((unsigned *)y, 1);
            do
                serving = y[1];
            while (serving != mine);
            __threadfence(); /*acquire*/
        }
        __syncthreads(); /*in*/
        x[threadIdx.x] = x[threadIdx.x] * 3 + blockIdx.x;
        __syncthreads(); /*out*/
        if (threadIdx.x == 0) {
            __threadfence(); /*release*/
            y[1] = mine + 1;
        }
    }
}
