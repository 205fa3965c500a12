// Functions by address: from a table, chosen by data, and by virtual calls.
typedef float (*unary)(float);

__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float minus(float x) { return -x; }
__device__ unary table[3] = {twice, square, minus};

struct shape {
    float size;
    __device__ shape(float s) : size(s) {}
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 0; }
};
struct disc : shape {
    __device__ disc(float s) : shape(s) {}
    __device__ float area() const override { return 3.0f * size * size; }
};
struct quad : shape {
    float other;
    __device__ quad(float s, float o) : shape(s), other(o) {}
    __device__ float area() const override { return size * other; }
    __device__ int corners() const override { return 4; }
};

__device__ __noinline__ float describe(const shape *s) { return s->area() + 100 * s->corners(); }

extern "C" __global__ void pointers(const float *in, float *out, const int *which, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unary f = table[which[i]];
    float v = f(in[i]);
    disc d(v);
    quad q(v, 0.5f);
    const shape *s = which[i] == 1 ? (const shape *)&d : &q;
    out[2 * i] = v;
    out[2 * i + 1] = describe(s);
}
