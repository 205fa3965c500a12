// For sm_90a.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct __align__(64) TensorMap { u8 bytes[128]; };

static __device__ __forceinline__ void mbarrier_init(u32 at, u32 n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" :  :  : "memory");
}

static __device__ __forceinline__ void mbarrier_expect(u32 at, u32 n) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void tensor_load_4d(u32 to, u64 map, u32 mbar, u32 c0, u32 c1, u32 c2, u32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" :  : "r"(to), "l"(map), "r"(mbar), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}

static __device__ __forceinline__ void ld_global_f32_if(float &r0, u64 at, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.b32 %0, [%1]; }" : "=f"(r0) : "l"(at), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ void mbarrier_wait(u32 at, u32 parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" :  : "r"(at), "r"(parity) : "memory");
}

static __device__ __forceinline__ u64 pack_i64(u32 a, u32 b) {
  u64 d;
  asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(a), "r"(b));
  return d;
}

static __device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ void wgmma_m64n32k32_f32_e4m3_e4m3_new(float (&d0)[16], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 0, 1, 1;" : "=f"(d0[0]), "=f"(d0[1]), "=f"(d0[2]), "=f"(d0[3]), "=f"(d0[4]), "=f"(d0[5]), "=f"(d0[6]), "=f"(d0[7]), "=f"(d0[8]), "=f"(d0[9]), "=f"(d0[10]), "=f"(d0[11]), "=f"(d0[12]), "=f"(d0[13]), "=f"(d0[14]), "=f"(d0[15]) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_m64n32k32_f32_e4m3_e4m3(float (&d0)[16], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_commit_group_sync_aligned() {
  asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0(float (&d0)[16]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]) :  : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :  : "r"(at) : "memory");
}

static __device__ __forceinline__ float ex2(float a) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ u16 cvt_e4m3x2(float a, float b) {
  u16 d;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ u32 pack_i32(u16 a, u16 b) {
  u32 d;
  asm("mov.b32 %0, {%1, %2};" : "=r"(d) : "h"(a), "h"(b));
  return d;
}

static __device__ __forceinline__ void wgmma_fence_2(float (&d0)[32], u32 &d1, u32 &d2, u32 &d3, u32 &d4) {
  asm volatile("wgmma.fence.sync.aligned;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]), "+r"(d1), "+r"(d2), "+r"(d3), "+r"(d4) :  : "memory");
}

static __device__ __forceinline__ void wgmma_m64n64k32_f32_e4m3_e4m3(float (&d0)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0_2(float (&d0)[32], u32 a0, u32 a1, u32 a2, u32 a3) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3) : "memory");
}

static __device__ __forceinline__ float rcp(float a) {
  float d;
  asm("rcp.rn.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ void bar_sync(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" :  : "r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ bool elect() {
  u32 d;
  asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p; }" : "=r"(d) : );
  return d != 0;
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ void stmatrix_x4(u32 at, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :  : "r"(at), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

static __device__ __forceinline__ void tensor_store_4d(u32 from, u64 map, u32 c0, u32 c1, u32 c2, u32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5}], [%0];" :  : "r"(from), "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}

static __device__ __forceinline__ void cp_async_bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" :  :  : "memory");
}

template <int N> static __device__ __forceinline__ void cp_async_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory");
}

static __device__ __forceinline__ float lg2(float a) {
  float d;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ void st_global_f32(u64 at, float r0) {
  asm volatile("st.global.b32 [%0], %1;" :  : "l"(at), "f"(r0) : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4_trans(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ u32 prmt(u32 a, u32 b, u32 c) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// 16496 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
attention(float scale, int B, int Sq, int H, int Sk, int KVH, const __grid_constant__ TensorMap q_map, const float *__restrict__ q_scale, u64 q_scale_stride0, u64 q_scale_stride1, const float *__restrict__ k_scale, u64 k_scale_stride0, u64 k_scale_stride1, const float *__restrict__ v_scale, u64 v_scale_stride0, u64 v_scale_stride1, const __grid_constant__ TensorMap o_map, float *__restrict__ lse, u64 lse_stride0, u64 lse_stride1, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  __shared__ __align__(1024) u8 smem[16496];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 q_map_at = (u64)&q_map;
  const u64 q_scale_at = (u64)q_scale;
  const u64 k_scale_at = (u64)k_scale;
  const u64 v_scale_at = (u64)v_scale;
  const u64 o_map_at = (u64)&o_map;
  const u64 lse_at = (u64)lse;
  const u64 k_map_at = (u64)&k_map;
  const u64 v_map_at = (u64)&v_map;
  float acc[32];
  float max_1[2];
  float sum[2];
  float s[16];
  float new_max[2];
  float p[16];
  float rescale[2];
  const u32 r1 = (Sq + 63u) >> 6;
  const u32 h = block_x % (u32)H;
  const u32 r2 = block_x / (u32)H;
  const u32 b = r2 / r1;
  const u32 m = r1 - 1u - r2 % r1;
  const u32 first = m << 6;
  const u32 last = first + ((u32)Sk - Sq);
  const u32 kv_head = (int)h / (H / KVH);
  const bool p1 = (tid & 31u) == 0u;
  const u32 r3 = tid >> 5;
  const bool p2 = r3 == 0u && p1;
  const u32 r4 = smem_base + 16384u;
  if (p2) {
    mbarrier_init(smem_base + 16384, 1);
    mbarrier_init(smem_base + 16400, 1);
    mbarrier_init(smem_base + 16416, 4);
    mbarrier_init(smem_base + 16408, 1);
    mbarrier_init(smem_base + 16424, 4);
    mbarrier_init(smem_base + 16432, 1);
    mbarrier_init(smem_base + 16448, 2);
    mbarrier_init(smem_base + 16440, 1);
    mbarrier_init(smem_base + 16456, 2);
    mbarrier_init(smem_base + 16464, 2);
    mbarrier_init(smem_base + 16480, 4);
    mbarrier_init(smem_base + 16472, 2);
    mbarrier_init(smem_base + 16488, 4);
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  const u32 end = min(Sk, (int)(last + 64u));
  if ((int)r3 < 4) {
    if (p2) {
      mbarrier_expect(smem_base + 16384, 4096);
      tensor_load_4d(smem_base, q_map_at, r4, 0u, h, first, b);
    }
    // load q_scale
    const bool p3 = kv_head < (u32)KVH;
    const u64 n1 = (i64)(int)b;
    const u64 n2 = (i64)(int)kv_head;
    float f1;
    ld_global_f32_if(f1, q_scale_at + n1 * (q_scale_stride0 << 2) + n2 * (q_scale_stride1 << 2), p3);
    // load k_scale
    float f2;
    ld_global_f32_if(f2, k_scale_at + n1 * (k_scale_stride0 << 2) + n2 * (k_scale_stride1 << 2), p3);
    // load v_scale
    float f3;
    ld_global_f32_if(f3, v_scale_at + n1 * (v_scale_stride0 << 2) + n2 * (v_scale_stride1 << 2), p3);
    const float f4 = scale * (f1 * f2);
    const float c = f4 * 1.442695f;
    mbarrier_wait(smem_base + 16384, 0u);
    const u32 r5 = min(max((int)(first + Sq * 0xffffffffu + Sk + 1u), 0) / 32, max(Sk, 0) / 32);
    const u32 r6 = (u32)min((int)r5, (int)(max((int)end, 0) + 31u) / 32) << 5;
    // dot
    const u32 r7 = smem_base >> 4;
    const u64 n3 = pack_i64(r7 + 65536u, 0x80000020u);
    const u64 n4 = pack_i64(r7 + 65538u, 0x80000020u);
    const float f5 = -c;
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll
    for (int e = 0; e < 32; ++e) {
      acc[e] = 0.0f;
    }
    max_1[0] = __uint_as_float(0xff800000u);
    max_1[1] = __uint_as_float(0xff800000u);
    sum[0] = 0.0f;
    sum[1] = 0.0f;
    #pragma unroll 1
    for (int n = 0; n < (int)end; n += 32) {
      const u32 r8 = slot << 3;
      const u32 r9 = smem_base + r8;
      mbarrier_wait(r9 + 16400, phase);
      const u32 r10 = slot << 11;
      const u32 r11 = smem_base + r10;
      const u32 r12 = (r11 + 4096u) >> 4;
      wgmma_fence();
      wgmma_m64n32k32_f32_e4m3_e4m3_new(s, n3, pack_i64(r12 + 65536u, 0x80000020u));
      wgmma_m64n32k32_f32_e4m3_e4m3(s, n4, pack_i64(r12 + 65538u, 0x80000020u));
      wgmma_commit_group_sync_aligned();
      wgmma_wait_0(s);
      __syncwarp();
      if (p1) {
        mbarrier_arrive(r9 + 16416);
      }
      if (n < (int)r6) {
      } else {
        const u32 r13 = (((tid >> 2) & 7u) ^ (r3 << 4)) + last;
        const u32 r14 = r13 + 8u;
        const u32 r15 = ((tid & 3u) << 1) + n;
        const u32 r16 = r15 + 1u;
        const u32 r17 = r15 + 8u;
        const u32 r18 = r15 + 9u;
        const u32 r19 = r15 + 16u;
        const u32 r20 = r15 + 17u;
        const u32 r21 = r15 + 24u;
        const u32 r22 = r15 + 25u;
        const bool p4 = (int)r15 < Sk;
        const bool p5 = (int)r16 < Sk;
        const bool p6 = (int)r17 < Sk;
        const bool p7 = (int)r18 < Sk;
        const bool p8 = (int)r19 < Sk;
        const bool p9 = (int)r20 < Sk;
        const bool p10 = (int)r21 < Sk;
        const bool p11 = (int)r22 < Sk;
        // select
        s[0] = (int)r13 >= (int)r15 && p4 ? s[0] : __uint_as_float(0xff800000u);
        s[1] = (int)r13 >= (int)r16 && p5 ? s[1] : __uint_as_float(0xff800000u);
        s[2] = (int)r14 >= (int)r15 && p4 ? s[2] : __uint_as_float(0xff800000u);
        s[3] = (int)r14 >= (int)r16 && p5 ? s[3] : __uint_as_float(0xff800000u);
        s[4] = (int)r13 >= (int)r17 && p6 ? s[4] : __uint_as_float(0xff800000u);
        s[5] = (int)r13 >= (int)r18 && p7 ? s[5] : __uint_as_float(0xff800000u);
        s[6] = (int)r14 >= (int)r17 && p6 ? s[6] : __uint_as_float(0xff800000u);
        s[7] = (int)r14 >= (int)r18 && p7 ? s[7] : __uint_as_float(0xff800000u);
        s[8] = (int)r13 >= (int)r19 && p8 ? s[8] : __uint_as_float(0xff800000u);
        s[9] = (int)r13 >= (int)r20 && p9 ? s[9] : __uint_as_float(0xff800000u);
        s[10] = (int)r14 >= (int)r19 && p8 ? s[10] : __uint_as_float(0xff800000u);
        s[11] = (int)r14 >= (int)r20 && p9 ? s[11] : __uint_as_float(0xff800000u);
        s[12] = (int)r13 >= (int)r21 && p10 ? s[12] : __uint_as_float(0xff800000u);
        s[13] = (int)r13 >= (int)r22 && p11 ? s[13] : __uint_as_float(0xff800000u);
        s[14] = (int)r14 >= (int)r21 && p10 ? s[14] : __uint_as_float(0xff800000u);
        s[15] = (int)r14 >= (int)r22 && p11 ? s[15] : __uint_as_float(0xff800000u);
      }
      // reduce
      const float f6 = fmaxf(s[0], s[8]);
      const float f7 = fmaxf(s[1], s[9]);
      const float f8 = fmaxf(s[4], s[12]);
      const float f9 = fmaxf(s[5], s[13]);
      const float f10 = fmaxf(fmaxf(f6, f8), fmaxf(f7, f9));
      const float f11 = __shfl_xor_sync(0xffffffffu, f10, 1);
      const float f12 = fmaxf(f10, f11);
      const float f13 = __shfl_xor_sync(0xffffffffu, f12, 2);
      const float f14 = fmaxf(s[2], s[10]);
      const float f15 = fmaxf(s[3], s[11]);
      const float f16 = fmaxf(s[6], s[14]);
      const float f17 = fmaxf(s[7], s[15]);
      const float f18 = fmaxf(fmaxf(f14, f16), fmaxf(f15, f17));
      const float f19 = __shfl_xor_sync(0xffffffffu, f18, 1);
      const float f20 = fmaxf(f18, f19);
      const float f21 = __shfl_xor_sync(0xffffffffu, f20, 2);
      new_max[0] = fmaxf(max_1[0], fmaxf(f12, f13));
      new_max[1] = fmaxf(max_1[1], fmaxf(f20, f21));
      // select
      const float f22 = new_max[0] == __uint_as_float(0xff800000u) ? 0.0f : new_max[0];
      const float f23 = new_max[1] == __uint_as_float(0xff800000u) ? 0.0f : new_max[1];
      const float f24 = fmaf(f22, f5, 8.0f);
      const float f25 = fmaf(f23, f5, 8.0f);
      const float f26 = fmaf(s[0], c, f24);
      const float f27 = fmaf(s[1], c, f24);
      const float f28 = fmaf(s[2], c, f25);
      const float f29 = fmaf(s[3], c, f25);
      const float f30 = fmaf(s[4], c, f24);
      const float f31 = fmaf(s[5], c, f24);
      const float f32 = fmaf(s[6], c, f25);
      const float f33 = fmaf(s[7], c, f25);
      const float f34 = fmaf(s[8], c, f24);
      const float f35 = fmaf(s[9], c, f24);
      const float f36 = fmaf(s[10], c, f25);
      const float f37 = fmaf(s[11], c, f25);
      const float f38 = fmaf(s[12], c, f24);
      const float f39 = fmaf(s[13], c, f24);
      const float f40 = fmaf(s[14], c, f25);
      const float f41 = fmaf(s[15], c, f25);
      // p = exp2
      p[0] = ex2(f26);
      p[1] = ex2(f27);
      p[4] = ex2(f28);
      p[5] = ex2(f29);
      p[2] = ex2(f30);
      p[3] = ex2(f31);
      p[6] = ex2(f32);
      p[7] = ex2(f33);
      p[8] = ex2(f34);
      p[9] = ex2(f35);
      p[12] = ex2(f36);
      p[13] = ex2(f37);
      p[10] = ex2(f38);
      p[11] = ex2(f39);
      p[14] = ex2(f40);
      p[15] = ex2(f41);
      const float f42 = max_1[0] - f22;
      const float f43 = max_1[1] - f23;
      // rescale = exp2
      rescale[0] = ex2(f42 * c);
      rescale[1] = ex2(f43 * c);
      u32 r23 = pack_i32(cvt_e4m3x2(p[1], p[0]), cvt_e4m3x2(p[3], p[2]));
      u32 r24 = pack_i32(cvt_e4m3x2(p[5], p[4]), cvt_e4m3x2(p[7], p[6]));
      u32 r25 = pack_i32(cvt_e4m3x2(p[9], p[8]), cvt_e4m3x2(p[11], p[10]));
      u32 r26 = pack_i32(cvt_e4m3x2(p[13], p[12]), cvt_e4m3x2(p[15], p[14]));
      acc[0] = acc[0] * rescale[0];
      acc[1] = acc[1] * rescale[0];
      acc[2] = acc[2] * rescale[1];
      acc[3] = acc[3] * rescale[1];
      acc[4] = acc[4] * rescale[0];
      acc[5] = acc[5] * rescale[0];
      acc[6] = acc[6] * rescale[1];
      acc[7] = acc[7] * rescale[1];
      acc[8] = acc[8] * rescale[0];
      acc[9] = acc[9] * rescale[0];
      acc[10] = acc[10] * rescale[1];
      acc[11] = acc[11] * rescale[1];
      acc[12] = acc[12] * rescale[0];
      acc[13] = acc[13] * rescale[0];
      acc[14] = acc[14] * rescale[1];
      acc[15] = acc[15] * rescale[1];
      acc[16] = acc[16] * rescale[0];
      acc[17] = acc[17] * rescale[0];
      acc[18] = acc[18] * rescale[1];
      acc[19] = acc[19] * rescale[1];
      acc[20] = acc[20] * rescale[0];
      acc[21] = acc[21] * rescale[0];
      acc[22] = acc[22] * rescale[1];
      acc[23] = acc[23] * rescale[1];
      acc[24] = acc[24] * rescale[0];
      acc[25] = acc[25] * rescale[0];
      acc[26] = acc[26] * rescale[1];
      acc[27] = acc[27] * rescale[1];
      acc[28] = acc[28] * rescale[0];
      acc[29] = acc[29] * rescale[0];
      acc[30] = acc[30] * rescale[1];
      acc[31] = acc[31] * rescale[1];
      mbarrier_wait(r9 + 16464, phase);
      // dot
      wgmma_fence_2(acc, r23, r24, r25, r26);
      wgmma_m64n64k32_f32_e4m3_e4m3(acc, r23, r24, r25, r26, pack_i64(((r11 + 12288u) >> 4) + 65536u, 0xc0000010u));
      wgmma_commit_group_sync_aligned();
      wgmma_wait_0_2(acc, r23, r24, r25, r26);
      __syncwarp();
      if (p1) {
        mbarrier_arrive(r9 + 16480);
      }
      // reduce
      const float f44 = p[0] + p[8] + (p[2] + p[10]) + (p[1] + p[9] + (p[3] + p[11]));
      const float f45 = __shfl_xor_sync(0xffffffffu, f44, 1);
      const float f46 = f44 + f45;
      const float f47 = __shfl_xor_sync(0xffffffffu, f46, 2);
      const float f48 = p[4] + p[12] + (p[6] + p[14]) + (p[5] + p[13] + (p[7] + p[15]));
      const float f49 = __shfl_xor_sync(0xffffffffu, f48, 1);
      const float f50 = f48 + f49;
      const float f51 = __shfl_xor_sync(0xffffffffu, f50, 2);
      sum[0] = fmaf(sum[0], rescale[0], f46 + f47);
      sum[1] = fmaf(sum[1], rescale[1], f50 + f51);
      const bool p12 = slot == 1u;
      phase = phase ^ (p12 ? 1u : 0u);
      const u32 r27 = slot + 1u;
      slot = r27 & 1u;
      max_1[0] = new_max[0];
      max_1[1] = new_max[1];
    }
    const bool p13 = sum[0] == 0.0f;
    const bool p14 = sum[1] == 0.0f;
    // select
    const float f52 = p13 ? 1.0f : sum[0];
    const float f53 = p14 ? 1.0f : sum[1];
    const float f54 = rcp(f52) * f3;
    const float f55 = rcp(f53) * f3;
    const float f56 = acc[0] * f54;
    const float f57 = acc[1] * f54;
    const float f58 = acc[2] * f55;
    const float f59 = acc[3] * f55;
    const float f60 = acc[4] * f54;
    const float f61 = acc[5] * f54;
    const float f62 = acc[6] * f55;
    const float f63 = acc[7] * f55;
    const float f64 = acc[8] * f54;
    const float f65 = acc[9] * f54;
    const float f66 = acc[10] * f55;
    const float f67 = acc[11] * f55;
    const float f68 = acc[12] * f54;
    const float f69 = acc[13] * f54;
    const float f70 = acc[14] * f55;
    const float f71 = acc[15] * f55;
    const float f72 = acc[16] * f54;
    const float f73 = acc[17] * f54;
    const float f74 = acc[18] * f55;
    const float f75 = acc[19] * f55;
    const float f76 = acc[20] * f54;
    const float f77 = acc[21] * f54;
    const float f78 = acc[22] * f55;
    const float f79 = acc[23] * f55;
    const float f80 = acc[24] * f54;
    const float f81 = acc[25] * f54;
    const float f82 = acc[26] * f55;
    const float f83 = acc[27] * f55;
    const float f84 = acc[28] * f54;
    const float f85 = acc[29] * f54;
    const float f86 = acc[30] * f55;
    const float f87 = acc[31] * f55;
    // store o
    bar_sync(1u, 128);
    const u32 r28 = smem_base + (r3 << 11);
    const bool p15 = elect();
    const u32 r29 = r3 << 4;
    const u32 r30 = ((tid >> 3) & 1u) << 10;
    const u32 r31 = ((tid & 7u) * 144u) ^ (((tid >> 4) & 1u) << 4);
    stmatrix_x4(r28 + (r31 + r30), cvt_bf16x2(f57, f56), cvt_bf16x2(f59, f58), cvt_bf16x2(f61, f60), cvt_bf16x2(f63, f62));
    stmatrix_x4(r28 + ((r31 ^ 32u) + r30), cvt_bf16x2(f65, f64), cvt_bf16x2(f67, f66), cvt_bf16x2(f69, f68), cvt_bf16x2(f71, f70));
    stmatrix_x4(r28 + ((r31 ^ 64u) + r30), cvt_bf16x2(f73, f72), cvt_bf16x2(f75, f74), cvt_bf16x2(f77, f76), cvt_bf16x2(f79, f78));
    stmatrix_x4(r28 + ((r31 ^ 96u) + r30), cvt_bf16x2(f81, f80), cvt_bf16x2(f83, f82), cvt_bf16x2(f85, f84), cvt_bf16x2(f87, f86));
    fence_proxy_async_shared_cta();
    __syncwarp();
    const u32 r32 = first + r29;
    if (p15) {
      tensor_store_4d(r28, o_map_at, 0u, h, r32, b);
      cp_async_bulk_commit();
    }
    cp_async_bulk_wait_read<0>();
    const bool p16 = sum[0] < 1.1754944e-38f;
    const float f88 = sum[0] * 4.2949673e+09f;
    const float f89 = p16 ? f88 : sum[0];
    const float f90 = lg2(f89);
    const bool p17 = sum[1] < 1.1754944e-38f;
    const float f91 = sum[1] * 4.2949673e+09f;
    const float f92 = p17 ? f91 : sum[1];
    const float f93 = lg2(f92);
    const float f94 = fmaf(max_1[0], f4, ((p16 ? f90 - 32.0f : f90) - 8.0f) * 0.6931472f);
    const float f95 = fmaf(max_1[1], f4, ((p17 ? f93 - 32.0f : f93) - 8.0f) * 0.6931472f);
    // store lse
    const u64 at1 = lse_at + n1 * (lse_stride0 << 2) + (i64)(int)h * (lse_stride1 << 2);
    const u32 r33 = ((tid >> 2) & 7u) ^ r29;
    const u64 at2 = at1 + (i64)(int)first * 4 + (i64)(int)r33 * 4;
    const u32 r34 = Sq - (first + r33);
    const bool p18 = (tid & 3u) == 0u;
    if (p18 && (int)r34 > 0) {
      st_global_f32(at2, p13 ? __uint_as_float(0xff800000u) : f94);
    }
    if (p18 && (int)r34 > 8) {
      st_global_f32(at2 + 32, p14 ? __uint_as_float(0xff800000u) : f95);
    }
  } else {
    if (r3 == 4u) {
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int n_1 = 0; n_1 < (int)end; n_1 += 32) {
        const u32 r35 = slot_1 << 3;
        const u32 r36 = smem_base + r35;
        const u32 r37 = r36 + 16400u;
        const bool p19 = elect();
        if (p19) {
          const u32 r38 = phase_1 ^ 1u;
          mbarrier_wait(r36 + 16416, r38);
          mbarrier_expect(r36 + 16400, 2048);
          const u32 r39 = slot_1 << 11;
          tensor_load_4d(smem_base + r39 + 4096, k_map_at, r37, 0u, kv_head, (u32)n_1, b);
        }
        const u32 r40 = r36 + 16432u;
        const bool p20 = elect();
        if (p20) {
          const u32 r41 = phase_1 ^ 1u;
          mbarrier_wait(r36 + 16448, r41);
          mbarrier_expect(r36 + 16432, 2048);
          const u32 r42 = slot_1 << 11;
          tensor_load_4d(smem_base + r42 + 8192, v_map_at, r40, 0u, kv_head, (u32)n_1, b);
        }
        const bool p21 = slot_1 == 1u;
        phase_1 = phase_1 ^ (p21 ? 1u : 0u);
        const u32 r43 = slot_1 + 1u;
        slot_1 = r43 & 1u;
      }
    }
    if ((int)r3 >= 6) {
      const u32 r44 = tid & 63u;
      const u32 r45 = r44 >> 3;
      const u32 r46 = (r45 & 3u) << 9;
      const u32 r47 = (tid & 1u) << 6;
      const u32 r48 = r44 >> 1;
      const u32 r49 = r44 >> 5;
      const u32 r50 = (r47 ^ ((r48 & 3u) * 144u)) ^ (r49 << 4);
      const u32 r51 = (r44 >> 2) & 1u;
      const u32 r52 = ((r47 ^ ((r48 & 1u) * 144u)) ^ (r51 << 5)) ^ ((r45 & 1u) << 5);
      const bool p22 = (tid & 16u) != 0u;
      const u32 r53 = p22 ? 30001u : 25632u;
      const u32 r54 = p22 ? 25632u : 30001u;
      const u32 r55 = r50 + r46;
      const u32 r56 = (r50 ^ 32u) + r46;
      const u32 r57 = (r52 ^ (((r44 >> 4) & 1u) << 4)) + ((r51 << 8) + (r49 << 9));
      u32 phase_2 = 0u;
      u32 slot_2 = 0u;
      #pragma unroll 1
      for (int n_2 = 0; n_2 < (int)end; n_2 += 32) {
        const u32 r58 = slot_2 << 3;
        const u32 r59 = smem_base + r58;
        mbarrier_wait(r59 + 16432, phase_2);
        const u32 r60 = slot_2 << 11;
        const u32 r61 = smem_base + r60;
        const u32 r62 = phase_2 ^ 1u;
        mbarrier_wait(r59 + 16480, r62);
        u32 r63, r64, r65, r66;
        ldmatrix_x4_trans(r63, r64, r65, r66, r61 + r55 + 8192);
        u32 r67, r68, r69, r70;
        ldmatrix_x4_trans(r67, r68, r69, r70, r61 + r56 + 8192);
        const u32 r71 = r61 + r57;
        stmatrix_x4(r71 + 12288, prmt(r63, r64, r53), prmt(r63, r64, r54), prmt(r65, r66, r53), prmt(r65, r66, r54));
        stmatrix_x4(r71 + 13312, prmt(r67, r68, r53), prmt(r67, r68, r54), prmt(r69, r70, r53), prmt(r69, r70, r54));
        fence_proxy_async_shared_cta();
        __syncwarp();
        if (p1) {
          mbarrier_arrive(r59 + 16464);
        }
        __syncwarp();
        if (p1) {
          mbarrier_arrive(r59 + 16448);
        }
        const bool p23 = slot_2 == 1u;
        phase_2 = phase_2 ^ (p23 ? 1u : 0u);
        const u32 r72 = slot_2 + 1u;
        slot_2 = r72 & 1u;
      }
    }
  }
}
