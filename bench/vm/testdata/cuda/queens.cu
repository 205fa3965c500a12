// Ways to place n queens: each thread takes the first two rows by its number
// and searches the others with a stack of its own.
extern "C" __global__ void queens(int n, unsigned long long *total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n)
        return;
    int c0 = i / n, c1 = i % n;
    if (c0 == c1 || abs(c0 - c1) == 1)
        return;
    unsigned all = (1u << n) - 1;
    unsigned cols[16], left[16], right[16], open[16];
    int d = 2;
    cols[2] = 1u << c0 | 1u << c1;
    left[2] = (1u << c0 << 2 | 1u << c1 << 1) & all;
    right[2] = 1u << c0 >> 2 | 1u << c1 >> 1;
    open[2] = all & ~(cols[2] | left[2] | right[2]);
    unsigned long long found = 0;
    while (d >= 2) {
        unsigned o = open[d];
        if (!o) {
            d--;
            continue;
        }
        unsigned bit = o & -o;
        open[d] = o ^ bit;
        if (d == n - 1) {
            found++;
            continue;
        }
        cols[d + 1] = cols[d] | bit;
        left[d + 1] = (left[d] | bit) << 1 & all;
        right[d + 1] = (right[d] | bit) >> 1;
        open[d + 1] = all & ~(cols[d + 1] | left[d + 1] | right[d + 1]);
        d++;
    }
    if (found)
        atomicAdd(total, found);
}
