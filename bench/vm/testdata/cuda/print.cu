extern "C" __global__ void print(const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 3 == 0)
        printf("%d: %.3f %s %c %5u|%-4d|%llx\n", i, (double)in[i], i % 2 ? "odd" : "even", 'a' + i, i * 7u, -i, 0x123456789abULL * i);
}
