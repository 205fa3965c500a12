// C = A B + C, tiles of 32 by 32 by 8, 4 by 2 numbers a thread.
extern "C" __global__ void sgemm(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
    __shared__ __align__(16) float as[8][32 + 4], bs[8][32];
    int t = threadIdx.x, row = blockIdx.y * 32, col = blockIdx.x * 32;
    int ty = t / 16 * 4, tx = t % 16 * 2;
    float acc[4][2] = {};
    for (int k0 = 0; k0 < k; k0 += 8) {
        for (int i = t; i < 256; i += 128) {
            int r = row + i / 8, kk = k0 + i % 8;
            as[i % 8][i / 8] = r < m && kk < k ? a[r * k + kk] : 0;
            kk = k0 + i / 32;
            r = col + i % 32;
            bs[i / 32][i % 32] = r < n && kk < k ? b[kk * n + r] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 8; kk++) {
            float4 x = *(const float4 *)&as[kk][ty];
            float2 y = *(const float2 *)&bs[kk][tx];
            float xs[4] = {x.x, x.y, x.z, x.w}, ys[2] = {y.x, y.y};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    acc[i][j] += xs[i] * ys[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            if (row + ty + i < m && col + tx + j < n)
                c[(row + ty + i) * n + col + tx + j] += acc[i][j];
}
