// Sparse matrix times vector, rows by warps, or by threads.
template <typename T, int WIDTH>
__device__ void spmv(const int *row, const int *col, const T *val, const T *x, T *y, int rows)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / WIDTH, lane = threadIdx.x % WIDTH;
    if (r >= rows)
        return;
    T sum = 0;
    for (int e = row[r] + lane; e < row[r + 1]; e += WIDTH)
        sum += val[e] * x[col[e]];
    unsigned group = WIDTH == 32 ? ~0u : ((1u << WIDTH) - 1) << (threadIdx.x % 32 / WIDTH * WIDTH);
    for (int d = WIDTH / 2; d > 0; d /= 2)
        sum += __shfl_xor_sync(group, sum, d, WIDTH);
    if (lane == 0)
        y[r] = sum;
}

extern "C" __global__ void spmvWarp(const int *row, const int *col, const float *val, const float *x, float *y, int rows) { spmv<float, 32>(row, col, val, x, y, rows); }
extern "C" __global__ void spmvPart(const int *row, const int *col, const double *val, const double *x, double *y, int rows) { spmv<double, 8>(row, col, val, x, y, rows); }
extern "C" __global__ void spmvThread(const int *row, const int *col, const float *val, const float *x, float *y, int rows) { spmv<float, 1>(row, col, val, x, y, rows); }
