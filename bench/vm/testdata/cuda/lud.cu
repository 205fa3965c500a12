// LU decomposition in place, a square of the diagonal at a time: the square
// itself, the row and column beside it, then what is left.
#define B 16

extern "C" __global__ void ludDiagonal(float *a, int n, int at)
{
    __shared__ float s[B][B];
    int t = threadIdx.x;
    for (int i = 0; i < B; i++)
        s[i][t] = a[(at + i) * n + at + t];
    __syncthreads();
    for (int i = 0; i < B - 1; i++) {
        if (t > i) {
            for (int j = 0; j < i; j++)
                s[t][i] -= s[t][j] * s[j][i];
            s[t][i] /= s[i][i];
        }
        __syncthreads();
        if (t > i)
            for (int j = 0; j <= i; j++)
                s[i + 1][t] -= s[i + 1][j] * s[j][t];
        __syncthreads();
    }
    for (int i = 1; i < B; i++)
        a[(at + i) * n + at + t] = s[i][t];
}

extern "C" __global__ void ludPerimeter(float *a, int n, int at)
{
    __shared__ float d[B][B], row[B][B], col[B][B];
    int t = threadIdx.x % B;
    int off = at + (blockIdx.x + 1) * B;
    if (threadIdx.x < B) {
        for (int i = 0; i < B; i++)
            d[i][t] = a[(at + i) * n + at + t];
        for (int i = 0; i < B; i++)
            row[i][t] = a[(at + i) * n + off + t];
    } else {
        for (int i = 0; i < B; i++)
            col[i][t] = a[(off + i) * n + at + t];
    }
    __syncthreads();
    if (threadIdx.x < B) {
        for (int i = 1; i < B; i++)
            for (int j = 0; j < i; j++)
                row[i][t] -= d[i][j] * row[j][t];
    } else {
        for (int i = 0; i < B; i++) {
            for (int j = 0; j < i; j++)
                col[t][i] -= col[t][j] * d[j][i];
            col[t][i] /= d[i][i];
        }
    }
    __syncthreads();
    if (threadIdx.x < B) {
        for (int i = 1; i < B; i++)
            a[(at + i) * n + off + t] = row[i][t];
    } else {
        for (int i = 0; i < B; i++)
            a[(off + i) * n + at + t] = col[i][t];
    }
}

extern "C" __global__ void ludInternal(float *a, int n, int at)
{
    __shared__ float row[B][B], col[B][B];
    int x = at + (blockIdx.x + 1) * B + threadIdx.x, y = at + (blockIdx.y + 1) * B + threadIdx.y;
    row[threadIdx.y][threadIdx.x] = a[(at + threadIdx.y) * n + x];
    col[threadIdx.y][threadIdx.x] = a[y * n + at + threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < B; i++)
        sum += col[threadIdx.y][i] * row[i][threadIdx.x];
    a[y * n + x] -= sum;
}
