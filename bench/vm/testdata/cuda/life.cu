// Conway's life on a torus, 32 cells a word, and a way through a table of
// costs from the top to the bottom, a row at a time (pathfinder).
__device__ void half(unsigned a, unsigned b, unsigned &s, unsigned &c) { s = a ^ b; c = a & b; }
__device__ void full(unsigned a, unsigned b, unsigned d, unsigned &s, unsigned &c)
{
    unsigned t = a ^ b;
    s = t ^ d;
    c = a & b | t & d;
}

extern "C" __global__ void life(const unsigned *in, unsigned *out, int words, int rows)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= words)
        return;
    unsigned s[3], c[3], mid = 0;
    for (int d = 0; d < 3; d++) {
        const unsigned *r = in + (y + d + rows - 1) % rows * words;
        unsigned m = r[x], l = r[(x + words - 1) % words], h = r[(x + 1) % words];
        unsigned left = __funnelshift_l(l, m, 1), right = __funnelshift_r(m, h, 1);
        if (d == 1) {
            mid = m;
            half(left, right, s[d], c[d]);
        } else {
            full(left, m, right, s[d], c[d]);
        }
    }
    unsigned ones, c0, t, c1, c2;
    full(s[0], s[1], s[2], ones, c0);
    full(c[0], c[1], c[2], t, c1);
    unsigned twos;
    half(t, c0, twos, c2);
    out[y * words + x] = twos & ~(c1 | c2) & (ones | mid);
}

#define W 64
extern "C" __global__ void path(const int *cost, const int *from, int *to, int cols, int first, int rows)
{
    __shared__ int prev[W], next[W];
    int inner = W - 2 * rows, t = threadIdx.x, x = blockIdx.x * inner + t - rows;
    bool inside = x >= 0 && x < cols;
    prev[t] = inside ? from[x] : 0x3fffffff;
    __syncthreads();
    for (int r = 0; r < rows; r++) {
        bool can = t > r && t < W - 1 - r && inside;
        if (can)
            next[t] = min(prev[t], min(prev[t - 1], prev[t + 1])) + cost[(first + r) * cols + x];
        __syncthreads();
        if (can)
            prev[t] = next[t];
        __syncthreads();
    }
    if (t >= rows && t < W - rows && inside)
        to[x] = prev[t];
}
