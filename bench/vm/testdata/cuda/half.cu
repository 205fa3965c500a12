// Two numbers of 16 bits in a register, through instructions written out.
extern "C" __global__ void half2(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned s, f, m;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(s) : "r"(a[i]), "r"(b[i]));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(f) : "r"(a[i]), "r"(b[i]), "r"(s));
    asm("{ .reg .pred p, q; setp.gt.f16x2 p|q, %1, %2; .reg .b16 al, ah, bl, bh;\n"
        "mov.b32 {al, ah}, %1; mov.b32 {bl, bh}, %2; selp.b16 al, al, bl, p; selp.b16 ah, ah, bh, q; mov.b32 %0, {al, ah}; }"
        : "=r"(m) : "r"(a[i]), "r"(b[i]));
    float lo, hi;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }" : "=f"(lo), "=f"(hi) : "r"(f));
    out[4 * i] = s;
    out[4 * i + 1] = m;
    out[4 * i + 2] = __float_as_uint(lo);
    out[4 * i + 3] = __float_as_uint(hi);
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bf16x2(const float *x, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned p, f;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(x[2 * i + 1]), "f"(x[2 * i]));
    asm("fma.rn.bf16x2 %0, %1, %1, %1;" : "=r"(f) : "r"(p));
    out[2 * i] = p;
    out[2 * i + 1] = f;
}
#endif
