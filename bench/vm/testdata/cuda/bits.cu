// Integer instructions that C has no operator for.
extern "C" __global__ void bits(const unsigned *a, const unsigned *b, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = a[i], y = b[i];
    unsigned *o = out + 16 * i;
    o[0] = __dp4a((int)x, (int)y, 1000);
    o[1] = __dp4a(x, y, 7u);
    o[2] = __popc(x) | __clz(y) << 8 | __ffs(x) << 16;
    o[3] = __brev(x);
    o[4] = __byte_perm(x, y, 0x6240);
    o[5] = __funnelshift_l(x, y, y & 31);
    o[6] = __mulhi((int)x, (int)y);
    o[7] = __umulhi(x, y);
    o[8] = __sad((int)x, (int)y, 5u);
    unsigned long long p = (unsigned long long)x * y + 12345, q = y | 1ull << 33;
    o[9] = (unsigned)(p / q);
    o[10] = (unsigned)(p % q);
    long long sp = (long long)p - (1ll << 62);
    o[11] = (unsigned)(sp % 1000003) + (unsigned)(sp / 77);
    o[12] = (unsigned)__clzll(p) | __popcll(p) << 8;
    o[13] = (int)x / (int)(y | 1) + (int)x % (int)(y | 1);
    o[14] = __usad(x, y, 1u) + __hadd((int)x, (int)y) + __uhadd(x, y);
    o[15] = (unsigned)(__brevll(p) >> 32) ^ (unsigned)__umul64hi(p, q << 20);
}
