__device__ __noinline__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__device__ __noinline__ unsigned odd(unsigned n);
__device__ __noinline__ unsigned even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ unsigned odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

// Quicksort of a slice of its own for each thread.
__device__ __noinline__ void quick(int *a, int lo, int hi)
{
    if (lo >= hi)
        return;
    int p = a[(lo + hi) / 2], i = lo, j = hi;
    while (i <= j) {
        while (a[i] < p)
            i++;
        while (a[j] > p)
            j--;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quick(a, lo, j);
    quick(a, i, hi);
}

extern "C" __global__ void recursion(unsigned *out, int *data, int each, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[4 * i] = fib(i % 9);
    out[4 * i + 1] = even(i % 7);
    out[4 * i + 2] = ackermann(i % 3, i % 4);
    quick(data + i * each, 0, each - 1 - i % 3);
    __syncwarp(__activemask());
    out[4 * i + 3] = 77;
}
