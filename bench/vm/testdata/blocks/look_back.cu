// A scan in one pass: each block leaves its own sum, then that of all up to it, and looks
// back over those before it until one has the latter.
// launch: grid=7 block=32
// slip global-race: st.release.gpu.global.u32 [%0], %1; // total => st.relaxed.gpu.global.u32 [%0], %1; // total
// slip global-race: ld.acquire.gpu => ld.relaxed.gpu
// slip global-race: ld.acquire.gpu => ld.acquire.cta
// slip global-race: st.release.gpu => st.release.cta
// slip global-race: sums[b] = own; flag(&state[b], 1); => flag(&state[b], 1); sums[b] = own;
// slip global-race: totals[b] = before + own; flag(&state[b], 2); => flag(&state[b], 2); totals[b] = before + own;
// slip global-race: s == 2 ? totals[p] => s >= 1 ? totals[p]
// slip deadlock: p = b - 1 => p = b + 1
__device__ void flag(unsigned *p, unsigned v)
{
    if (v == 1)
        asm volatile("st.release.gpu.global.u32 [%0], %1; // own" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
    else
        asm volatile("st.release.gpu.global.u32 [%0], %1; // total" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}

__device__ unsigned flagged(unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
    return v;
}

extern "C" __global__ void k(unsigned *state, unsigned *sums, unsigned *z)
{
    unsigned b = blockIdx.x, own = b * b + 1, before = 0, *totals = sums + 64;
    if (threadIdx.x > 0)
        return;
    if (b == 0) {
        totals[b] = before + own; flag(&state[b], 2);
    } else {
        sums[b] = own; flag(&state[b], 1);
        for (int p = b - 1;; p--) {
            unsigned s;
            do
                s = flagged(&state[p]);
            while (s == 0);
            before += s == 2 ? totals[p] : sums[p];
            if (s == 2)
                break;
        }
        totals[b] = before + own; flag(&state[b], 2);
    }
    z[b] = before;
}
