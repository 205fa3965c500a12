// The OpenCL twin of tiled_matmul.cu: C = A * B, row-major, sizes that are multiples
// of 32: a tile of 32x32 by 16x16 work items, each of which computes 2x2.
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void tiled_matmul(global const float *a, global const float *b, global float *c, int m, int n, int k) {
  local float as[32][33];
  local float bs[32][33];
  int tx = get_local_id(0), ty = get_local_id(1);
  int row = get_group_id(1) * 32, col = get_group_id(0) * 32;
  float acc[2][2] = {{0, 0}, {0, 0}};
  for (int k0 = 0; k0 < k; k0 += 32) {
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) {
        as[ty + 16 * i][tx + 16 * j] = a[(row + ty + 16 * i) * k + k0 + tx + 16 * j];
        bs[ty + 16 * i][tx + 16 * j] = b[(k0 + ty + 16 * i) * n + col + tx + 16 * j];
      }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int kk = 0; kk < 32; kk++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) acc[i][j] += as[ty + 16 * i][kk] * bs[kk][tx + 16 * j];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) c[(row + ty + 16 * i) * n + col + tx + 16 * j] = acc[i][j];
}
