// A step of k-means: each point joins the nearest centre, and blocks add up
// their shares of the new ones.
#define K 5
#define D 3

extern "C" __global__ void kmeans(const float *points, int n, const float *centres, int *of, float *sums, int *counts)
{
    __shared__ float part[K * D];
    __shared__ int members[K];
    for (int i = threadIdx.x; i < K * D; i += blockDim.x)
        part[i] = 0;
    if (threadIdx.x < K)
        members[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float best = 3.4e38f;
        int which = 0;
        for (int k = 0; k < K; k++) {
            float d = 0;
            for (int c = 0; c < D; c++) {
                float x = points[c * n + i] - centres[k * D + c];
                d += x * x;
            }
            if (d < best) {
                best = d;
                which = k;
            }
        }
        of[i] = which;
        atomicAdd(&members[which], 1);
        for (int c = 0; c < D; c++)
            atomicAdd(&part[which * D + c], points[c * n + i]);
    }
    __syncthreads();
    if (threadIdx.x < K * D)
        atomicAdd(&sums[threadIdx.x], part[threadIdx.x]);
    if (threadIdx.x < K)
        atomicAdd(&counts[threadIdx.x], members[threadIdx.x]);
}
