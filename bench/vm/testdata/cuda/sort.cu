// Sorts of a block: bitonic, of any number of keys, and by radix, a bit at a
// time, with ballots.

extern "C" __global__ void bitonic(unsigned *keys, int n)
{
    extern __shared__ unsigned s[];
    for (int i = threadIdx.x; i < 2 * blockDim.x; i += blockDim.x)
        s[i] = i < n ? keys[i] : 0xffffffffu;
    for (int size = 2; size <= 2 * blockDim.x; size <<= 1) {
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            int pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            bool down = (pos & size) != 0;
            unsigned a = s[pos], b = s[pos + stride];
            if ((a > b) != down) {
                s[pos] = b;
                s[pos + stride] = a;
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        keys[i] = s[i];
}

extern "C" __global__ void radix(unsigned *keys, unsigned *values, int n)
{
    __shared__ unsigned k[256], v[256];
    __shared__ int zeros[8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    k[t] = t < n ? keys[t] : 0xffffffffu;
    v[t] = t < n ? values[t] : 0;
    for (int bit = 0; bit < 32; bit++) {
        __syncthreads();
        unsigned key = k[t], value = v[t];
        bool zero = !(key >> bit & 1);
        unsigned ballot = __ballot_sync(~0u, zero);
        if (lane == 0)
            zeros[warp] = __popc(ballot);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 8; w++) {
            before += w < warp ? zeros[w] : 0;
            all += zeros[w];
        }
        before += __popc(ballot & ((1u << lane) - 1));
        int to = zero ? before : all + t - before;
        k[to] = key;
        v[to] = value;
    }
    __syncthreads();
    if (t < n) {
        keys[t] = k[t];
        values[t] = v[t];
    }
}
