extern "C" __global__ void __launch_bounds__(64) nbody(const float4 *body, float4 *force, int n, float soft)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += 64) {
        tile[threadIdx.x] = t + threadIdx.x < n ? body[t + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 64; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inv = rsqrtf(dx * dx + dy * dy + dz * dz + soft);
            float s = tile[j].w * inv * inv * inv;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    if (i < n)
        force[i] = make_float4(ax, ay, az, 0);
}
