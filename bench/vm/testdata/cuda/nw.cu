// Needleman-Wunsch: a block fills a square of the score table along its
// diagonals; a launch takes a diagonal of squares.
#define B 16

extern "C" __global__ void nw(int *score, const int *match, int cols, int penalty, int firstRow, int squares)
{
    __shared__ int t[B + 1][B + 1];
    __shared__ int m[B][B];
    int tx = threadIdx.x;
    int by = firstRow + blockIdx.x, bx = squares - 1 - by;
    int at = (by * B + 1) * cols + bx * B + 1;
    if (tx == 0)
        t[0][0] = score[at - cols - 1];
    for (int y = 0; y < B; y++)
        m[y][tx] = match[at + y * cols + tx];
    t[tx + 1][0] = score[at + tx * cols - 1];
    t[0][tx + 1] = score[at - cols + tx];
    __syncthreads();
    for (int d = 0; d < B; d++) {
        if (tx <= d) {
            int x = tx + 1, y = d - tx + 1;
            t[y][x] = max(max(t[y - 1][x - 1] + m[y - 1][x - 1], t[y][x - 1] - penalty), t[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int d = B - 2; d >= 0; d--) {
        if (tx <= d) {
            int x = tx + B - d, y = B - tx;
            t[y][x] = max(max(t[y - 1][x - 1] + m[y - 1][x - 1], t[y][x - 1] - penalty), t[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int y = 0; y < B; y++)
        score[at + y * cols + tx] = t[y + 1][tx + 1];
}
