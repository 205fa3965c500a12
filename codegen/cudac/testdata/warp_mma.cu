// For sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ u32 read_laneid() {
  u32 d;
  asm("mov.u32 %0, %%laneid;" : "=r"(d) : );
  return d;
}

static __device__ __forceinline__ u32 ld_global_nc(u64 at) {
  u32 d;
  asm("ld.global.nc.b32 %0, [%1];" : "=r"(d) : "l"(at));
  return d;
}

static __device__ __forceinline__ void mma_m16n8k16_f16_f32(float &d0, float &d1, float &d2, float &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void st_global_v2_f32(u64 at, float r0, float r1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" :  : "l"(at), "f"(r0), "f"(r1) : "memory");
}

extern "C" __global__ void __launch_bounds__(32)
warp_mma(const u16 *__restrict__ a, const u16 *__restrict__ b, float *__restrict__ c) {
  const u64 a_at = (u64)a;
  const u64 b_at = (u64)b;
  const u64 c_at = (u64)c;
  const u32 lane = read_laneid();
  float d[4];
  const u32 g = lane >> 2;
  const u32 t = lane & 3u;
  const u32 r1 = g << 5;
  const u32 frag = r1 + (t << 2);
  const u64 n1 = (u64)frag;
  const u64 at1 = a_at + n1;
  const u32 h1 = ld_global_nc(at1);
  const u32 h2 = ld_global_nc(at1 + 256);
  const u32 h3 = ld_global_nc(at1 + 16);
  const u32 h4 = ld_global_nc(at1 + 272);
  const u64 at2 = b_at + n1;
  const u32 h5 = ld_global_nc(at2);
  const u32 h6 = ld_global_nc(at2 + 16);
  #pragma unroll
  for (int e = 0; e < 4; ++e) {
    d[e] = 0.0f;
  }
  mma_m16n8k16_f16_f32(d[0], d[1], d[2], d[3], h1, h2, h3, h4, h5, h6);
  const u64 at3 = c_at + (u64)(r1 + (t << 3));
  st_global_v2_f32(at3, d[0], d[1]);
  st_global_v2_f32(at3 + 256, d[2], d[3]);
}
