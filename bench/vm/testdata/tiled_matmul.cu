// C = A * B, row-major, sizes that are multiples of 32: a tile of 32x32 by 16x16
// threads, each of which computes 2x2.
extern "C" __global__ void __launch_bounds__(256) tiled_matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[32][33];
  __shared__ float bs[32][33];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 32, col = blockIdx.x * 32;
  float acc[2][2] = {};
  for (int k0 = 0; k0 < k; k0 += 32) {
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) {
        as[ty + 16 * i][tx + 16 * j] = a[(row + ty + 16 * i) * k + k0 + tx + 16 * j];
        bs[ty + 16 * i][tx + 16 * j] = b[(k0 + ty + 16 * i) * n + col + tx + 16 * j];
      }
    __syncthreads();
    for (int kk = 0; kk < 32; kk++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) acc[i][j] += as[ty + 16 * i][kk] * bs[kk][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) c[(row + ty + 16 * i) * n + col + tx + 16 * j] = acc[i][j];
}
