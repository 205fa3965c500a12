// Control flow that compilers make much of: tables of functions, dense
// switches, irreducible loops, lanes that leave early.
typedef int (*step)(int, int);

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int sub(int a, int b) { return a - b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ __noinline__ int fold(int a, int b) { return a ^ (b << 3) ^ (a >> 5); }

struct entry {
    step f;
    int with;
};
__constant__ entry constants[4] = {{fold, 3}, {add, 10}, {mul, 5}, {sub, 77}};
__device__ step globals[4] = {sub, mul, fold, add};
__device__ step *indirect = globals + 1;

extern "C" __global__ void tables(const int *which, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = i;
    for (int k = 0; k < 5; k++) {
        int w = which[(i + k) % n];
        entry e = constants[w & 3];
        v = e.f(v, e.with);
        v = globals[w >> 2 & 3](v, k);
        if (w & 16)
            v = indirect[w >> 5 & 1](v, i);
    }
    out[i] = v;
}

extern "C" __global__ void setTable() { globals[threadIdx.x] = (threadIdx.x & 1) ? add : fold; }

__device__ __noinline__ int choose(int op, int v)
{
    switch (op) {
    case 0: return v + 1;
    case 1: v *= 3; // and on
    case 2: v ^= 0x55; break;
    case 3: return -v;
    case 4: v = v / 3; break;
    case 5: v -= 1000;
    case 6:
    case 7: v += op; break;
    case 8: return v << 2;
    case 9: v = v % 17; break;
    case 11: v = ~v; break;
    case 12: v = v > 0 ? v : 12; break;
    case 13: return v & 0xffff;
    case 14: v |= 0x1000; break;
    case 15: v >>= 1; break;
    case -3: v = 5; break;
    default: v += 100;
    }
    return v * 2;
}

extern "C" __global__ void switches(const int *op, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = i;
    for (int k = 0; k < 4; k++)
        v = choose(op[(i * 4 + k) % n], v);
    out[i] = v;
}

// Two loops that are each entered in their middle.
extern "C" __global__ void irreducible(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = in[i], c = 0, d = 0;
    if (v & 1)
        goto inner;
    if (v & 2)
        goto side;
outer:
    c++;
    v = v * 7 + 3 & 0xfff;
inner:
    d += v & 3;
    if (d > 40 || c > 50)
        goto done;
    if (v % 5 == 2) {
        v += 9;
        goto side;
    }
    v ^= 0x2b;
    if (v & 4)
        goto outer;
side:
    d++;
    v = v + c & 0xfff;
    if (v & 8)
        goto inner;
    if (c < 30)
        goto outer;
done:
    __syncwarp(__activemask());
    out[i] = (c << 20) + (d << 12) + v;
}

// Lanes leave one after the other; those that stay vote and shuffle.
extern "C" __global__ void leaving(unsigned *out)
{
    int lane = threadIdx.x % 32;
    unsigned sum = 0, mask = ~0u;
    for (int round = 0; round < 6; round++) {
        if (lane % 7 == round) {
            if (lane & 1)
                asm volatile("exit;");
            return;
        }
        for (int l = 0; l < 32; l++)
            if (l % 7 == round)
                mask &= ~(1u << l);
        __syncwarp(mask);
        unsigned odd = __ballot_sync(mask, lane & 1);
        sum = sum * 5 + __popc(odd) + (__all_sync(mask, lane > 5) ? 100 : 0) + (__any_sync(mask, lane == 12) ? 1000 : 0);
        int from = __ffs(mask) - 1;
        sum += __shfl_sync(mask, lane + round, from);
        sum += 7 * (__activemask() == mask || __popc(__activemask()) <= __popc(mask));
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void matching(const int *in, unsigned *out)
{
    int lane = threadIdx.x % 32, v = in[threadIdx.x], all;
    unsigned any = __match_any_sync(~0u, v), same = __match_all_sync(~0u, v / 100, &all);
    unsigned long long wide = (unsigned long long)v << 32;
    unsigned anyWide = __match_any_sync(~0u, wide);
    out[4 * threadIdx.x] = any;
    out[4 * threadIdx.x + 1] = same + 2 * all;
    out[4 * threadIdx.x + 2] = anyWide == any;
    unsigned r = 0;
    if (v & 1) {
        unsigned m = __ballot_sync(__activemask(), 1), want = 0;
        for (int l = 0; l < 32; l++)
            want |= (unsigned)(in[threadIdx.x - lane + l] & 1) << l;
        (void)m;
#if __CUDA_ARCH__ >= 800
        r = __reduce_add_sync(want, v) * 3 + __reduce_max_sync(want, v) + (unsigned)__reduce_min_sync(want, -v) + __reduce_xor_sync(want, v);
#else
        unsigned x = 0, most = 0, sum = 0;
        int least = 1 << 30;
        for (int l = 0; l < 32; l++)
            if (want >> l & 1) {
                int w = __shfl_sync(want, v, l);
                x ^= w, sum += w, most = w > most ? w : most, least = -w < least ? -w : least;
            }
        r = sum * 3 + most + (unsigned)least + x;
#endif
    }
    int elected = 0;
#if __CUDA_ARCH__ >= 900
    unsigned who;
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(who), "=r"(elected));
    elected = __popc(__ballot_sync(~0u, elected)) == 1 && elected == (who == lane);
#else
    elected = 1;
#endif
    out[4 * threadIdx.x + 3] = r + elected;
}

// An array of as many elements as a thread asks for.
__device__ __noinline__ int sized(int n)
{
    int *a;
    asm volatile("{ .reg .b64 t; alloca.u64 t, %1; cvta.local.u64 %0, t; }" : "=l"(a) : "l"(n * sizeof(int)));
    for (int i = 0; i < n; i++)
        a[i] = i * n;
    int s = 0;
    for (int i = n - 1; i >= 0; i -= 2)
        s = s * 3 + a[i];
    return n > 1 ? s + sized(n / 2) : s;
}

extern "C" __global__ void allocas(int *out) { out[threadIdx.x] = sized(1 + threadIdx.x % 9); }

#define READ(type, constraint, name, into)                        \
    {                                                             \
        type v;                                                   \
        asm volatile("mov." into ", %%" name ";" : constraint(v)); \
        out[k++ * threads + at] = (unsigned)v;                    \
    }

extern "C" __global__ void registers(unsigned *out)
{
    int threads = gridDim.x * gridDim.y * gridDim.z * blockDim.x * blockDim.y * blockDim.z, k = 0;
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int at = block * blockDim.x * blockDim.y * blockDim.z + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    READ(unsigned, "=r", "laneid", "u32 %0")
    READ(unsigned, "=r", "lanemask_eq", "u32 %0")
    READ(unsigned, "=r", "lanemask_lt", "u32 %0")
    READ(unsigned, "=r", "lanemask_le", "u32 %0")
    READ(unsigned, "=r", "lanemask_gt", "u32 %0")
    READ(unsigned, "=r", "lanemask_ge", "u32 %0")
    READ(unsigned, "=r", "tid.y", "u32 %0")
    READ(unsigned, "=r", "ntid.z", "u32 %0")
    READ(unsigned, "=r", "ctaid.z", "u32 %0")
    READ(unsigned, "=r", "nctaid.y", "u32 %0")
    READ(unsigned, "=r", "dynamic_smem_size", "u32 %0")
    unsigned sm, sms, warp, warps;
    unsigned long long t0, t1, g0, g1;
    long long c0 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g0));
    asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%nsmid; mov.u32 %2, %%warpid; mov.u32 %3, %%nwarpid;" : "=r"(sm), "=r"(sms), "=r"(warp), "=r"(warps));
    __nanosleep(100);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g1));
    asm volatile("mov.u64 %0, %%gridid; mov.u64 %1, %%clock64;" : "=l"(t0), "=l"(t1));
    out[k * threads + at] = (sm < sms) + 2 * (warp < warps) + 4 * (g1 >= g0) + 8 * ((long long)t1 > c0) + 16 * (clock() != 0);
}
