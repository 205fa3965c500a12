// Flow that no loops and ifs are behind: jumps into the middle of a cycle, ways
// out of nested loops, and lanes that leave for good while others go on.
extern "C" __global__ void tangle(const int *in, int *out, int n)
{
    __shared__ int left;
    if (threadIdx.x == 0)
        left = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], w = 0, k = 0;
    if (v % 3 == 0)
        goto B;
A:
    w += 2;
    v = v * 5 + 1 & 1023;
    if (++k > 60)
        goto out_;
    if (v % 7 == 2)
        goto C;
B:
    w ^= v;
    v = v * 3 + 2 & 1023;
    if (v % 5 == 1)
        goto A;
    if (v % 211 == 4)
        return; // out[i] stays
C:
    w = w * 3 + 1;
    if (++k > 60)
        goto out_;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b <= a; b++) {
            if (v + a * b & 64)
                goto next;
            if ((v ^ w) % 13 == a)
                continue;
            w += a + b;
            if (w % 29 == 3)
                break;
        }
next:
    v = v + w & 1023;
    if (v & 1)
        goto B;
    goto A;
out_:
    atomicAdd(&left, 1);
    __syncthreads();
    out[i] = w + 1000000 * left;
}
