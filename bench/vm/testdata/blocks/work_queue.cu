// Blocks take tiles from a queue until there are none.
// launch: grid=3 block=64
// slip shared-race: __syncthreads(); /*told*/ =>
// slip shared-race: __syncthreads(); /*done*/ =>
// slip global-race: atomicAdd(&z[threadIdx.x], s); => z[threadIdx.x] += s;
// slip global-race: tile = atomicAdd(y, 1); => { tile = *y; *y = tile + 1; }
extern "C" __global__ void k(unsigned *x, unsigned *y, unsigned *z)
{
    __shared__ unsigned tile;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(y, 1);
        __syncthreads(); /*told*/
        unsigned mine = tile;
        __syncthreads(); /*done*/
        if (mine >= 9)
            break;
        unsigned s = mine * 64 + threadIdx.x;
        x[s] = s;
        atomicAdd(&z[threadIdx.x], s);
    }
}
