// A stencil along three axes in binary64, marching up the z axis with the
// column kept in registers; its coefficients are constants.
#define R 2
__constant__ double weight[R + 1] = {-2.5, 4.0 / 3, -1.0 / 12};

extern "C" __global__ void stencil(const double *in, double *out, int nx, int ny, int nz)
{
    __shared__ double plane[8 + 2 * R][16 + 2 * R];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int cx = min(x, nx - 1), cy = min(y, ny - 1);
    double column[2 * R + 1];
#pragma unroll
    for (int i = 0; i < 2 * R; i++)
        column[i + 1] = in[(i * ny + cy) * nx + cx];
    for (int z = R; z < nz - R; z++) {
#pragma unroll
        for (int i = 0; i < 2 * R; i++)
            column[i] = column[i + 1];
        column[2 * R] = in[((z + R) * ny + cy) * nx + cx];
        __syncthreads();
        for (int j = threadIdx.y; j < 8 + 2 * R; j += 8)
            for (int i = threadIdx.x; i < 16 + 2 * R; i += 16) {
                int px = min(max((int)blockIdx.x * 16 + i - R, 0), nx - 1), py = min(max((int)blockIdx.y * 8 + j - R, 0), ny - 1);
                plane[j][i] = in[(z * ny + py) * nx + px];
            }
        __syncthreads();
        if (x < R || x >= nx - R || y < R || y >= ny - R)
            continue;
        double v = 3 * weight[0] * column[R];
#pragma unroll
        for (int r = 1; r <= R; r++) {
            v += weight[r] * (column[R - r] + column[R + r]);
            v += weight[r] * (plane[threadIdx.y + R][threadIdx.x + R - r] + plane[threadIdx.y + R][threadIdx.x + R + r]);
            v += weight[r] * (plane[threadIdx.y + R - r][threadIdx.x + R] + plane[threadIdx.y + R + r][threadIdx.x + R]);
        }
        out[(z * ny + y) * nx + x] = v;
    }
}
