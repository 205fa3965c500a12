// Structures by value: as a parameter, through calls, and in unions.
struct pixel {
    unsigned char r, g, b;
};
struct job {
    double scale;
    pixel colour[5];
    short offset[3];
    long long seed;
    const pixel *from;
};
union word {
    float f;
    unsigned u;
    unsigned short h[2];
};

__device__ __noinline__ job shifted(job j, int by)
{
    for (int i = 0; i < 3; i++)
        j.offset[i] += by;
    j.scale *= 2;
    return j;
}

extern "C" __global__ void structs(job j, pixel *to, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    job k = shifted(j, i % 4);
    pixel p = k.from[i], c = k.colour[i % 5];
    to[i].r = p.r + c.r + k.offset[0];
    to[i].g = p.g - c.g + k.offset[1];
    to[i].b = p.b ^ c.b ^ k.offset[2];
    word w;
    w.f = (float)(k.scale + k.seed);
    w.h[0] ^= i;
    out[i] = w.f;
}
