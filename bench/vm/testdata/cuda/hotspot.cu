// Heat spreads over a plate; each block advances a tile by several steps before
// it writes, so that tiles overlap by a rim that shrinks with every step.
#define TILE 16
#define STEPS 3

extern "C" __global__ void hotspot(const float *power, const float *from, float *to, int w, int h, float k)
{
    __shared__ float now[TILE][TILE];
    __shared__ float next[TILE][TILE];
    const int inner = TILE - 2 * STEPS;
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * inner + tx - STEPS, y = blockIdx.y * inner + ty - STEPS;
    bool inside = x >= 0 && x < w && y >= 0 && y < h;
    float p = 0;
    if (inside) {
        now[ty][tx] = from[y * w + x];
        p = power[y * w + x];
    }
    __syncthreads();
    // Cells of the tile that lie on the plate.
    int x0 = max(0, STEPS - (int)(blockIdx.x * inner)), x1 = min(TILE - 1, w - 1 - (int)(blockIdx.x * inner) + STEPS);
    int y0 = max(0, STEPS - (int)(blockIdx.y * inner)), y1 = min(TILE - 1, h - 1 - (int)(blockIdx.y * inner) + STEPS);
    bool valid = false;
    for (int s = 0; s < STEPS; s++) {
        valid = false;
        if (inside && tx >= s + 1 && tx < TILE - s - 1 && ty >= s + 1 && ty < TILE - s - 1) {
            valid = true;
            float c = now[ty][tx];
            float n = now[max(ty - 1, y0)][tx], e = now[ty][min(tx + 1, x1)];
            float q = now[min(ty + 1, y1)][tx], u = now[ty][max(tx - 1, x0)];
            next[ty][tx] = c + k * (n + q + e + u - 4.0f * c + p);
        }
        __syncthreads();
        if (s == STEPS - 1)
            break;
        if (valid)
            now[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    if (valid)
        to[y * w + x] = next[ty][tx];
}
