// A Fourier transform of 128 points a block, by halves.
extern "C" __global__ void fft(float2 *data)
{
    __shared__ float2 s[128];
    int t = threadIdx.x;
    float2 *d = data + blockIdx.x * 128;
    for (int i = t; i < 128; i += 64)
        s[__brev(i) >> 25] = d[i];
    for (int half = 1; half < 128; half *= 2) {
        __syncthreads();
        int k = t % half, at = t / half * 2 * half + k;
        float sn, cs;
        sincospif(-(float)k / half, &sn, &cs);
        float2 a = s[at], b = s[at + half];
        float2 w = make_float2(b.x * cs - b.y * sn, b.x * sn + b.y * cs);
        s[at] = make_float2(a.x + w.x, a.y + w.y);
        s[at + half] = make_float2(a.x - w.x, a.y - w.y);
    }
    __syncthreads();
    for (int i = t; i < 128; i += 64)
        d[i] = s[i];
}
