// Arrays of a thread's own with indices known at run time only.
extern "C" __global__ void local(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int count[16];
    for (int k = 0; k < 16; k++)
        count[k] = 0;
    for (int k = 0; k < 40; k++)
        count[in[(i + k * 7) % n] & 15]++;
    int order[16];
    for (int k = 0; k < 16; k++) { // insertion sort
        int j = k;
        while (j > 0 && count[order[j - 1]] < count[k]) {
            order[j] = order[j - 1];
            j--;
        }
        order[j] = k;
    }
    char word[12];
    int len = 0, v = in[i];
    do {
        word[len++] = '0' + v % 10;
        v /= 10;
    } while (v);
    int digits = 0;
    for (int k = len - 1; k >= 0; k--)
        digits = digits * 11 + (word[k] - '0');
    out[2 * i] = order[0] * 256 + order[1] * 16 + count[order[0]];
    out[2 * i + 1] = digits;
}
