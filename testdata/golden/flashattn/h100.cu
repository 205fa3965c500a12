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

static __device__ __forceinline__ void mbarrier_wait(u32 at, u32 parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }" :  : "r"(at), "r"(parity) : "memory");
}

static __device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ u64 pack_i64(u32 a, u32 b) {
  u64 d;
  asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(a), "r"(b));
  return d;
}

static __device__ __forceinline__ void wgmma_m64n16k16_f32_bf16_bf16_new(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 0, 1, 1, 0, 0;" : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3), "=f"(d4), "=f"(d5), "=f"(d6), "=f"(d7) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_m64n16k16_f32_bf16_bf16(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_commit_group_sync_aligned() {
  asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7) :  : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :  : "r"(at) : "memory");
}

static __device__ __forceinline__ float ex2(float a) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ void wgmma_m64n16k16_f32_bf16_bf16_new_2(float (&d0)[8], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 0, 1, 1, 0, 0;" : "=f"(d0[0]), "=f"(d0[1]), "=f"(d0[2]), "=f"(d0[3]), "=f"(d0[4]), "=f"(d0[5]), "=f"(d0[6]), "=f"(d0[7]) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_m64n16k16_f32_bf16_bf16_2(float (&d0)[8], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_fence_2(float (&d0)[32], u32 &d1, u32 &d2, u32 &d3, u32 &d4) {
  asm volatile("wgmma.fence.sync.aligned;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]), "+r"(d1), "+r"(d2), "+r"(d3), "+r"(d4) :  : "memory");
}

static __device__ __forceinline__ void wgmma_m64n64k16_f32_bf16_bf16_ra_tb(float (&d0)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_wait_1(float (&d0)[8]) {
  asm volatile("wgmma.wait_group.sync.aligned 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]) :  : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0_2(float (&d0)[32], u32 a0, u32 a1, u32 a2, u32 a3) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3) : "memory");
}

static __device__ __forceinline__ void wgmma_fence_3(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, float &d16, float &d17, float &d18, float &d19, float &d20, float &d21, float &d22, float &d23, float &d24, float &d25, float &d26, float &d27, float &d28, float &d29, float &d30, float &d31, u32 &d32, u32 &d33, u32 &d34, u32 &d35) {
  asm volatile("wgmma.fence.sync.aligned;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15), "+f"(d16), "+f"(d17), "+f"(d18), "+f"(d19), "+f"(d20), "+f"(d21), "+f"(d22), "+f"(d23), "+f"(d24), "+f"(d25), "+f"(d26), "+f"(d27), "+f"(d28), "+f"(d29), "+f"(d30), "+f"(d31), "+r"(d32), "+r"(d33), "+r"(d34), "+r"(d35) :  : "memory");
}

static __device__ __forceinline__ void wgmma_m64n64k16_f32_bf16_bf16_ra_tb_2(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, float &d16, float &d17, float &d18, float &d19, float &d20, float &d21, float &d22, float &d23, float &d24, float &d25, float &d26, float &d27, float &d28, float &d29, float &d30, float &d31, u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15), "+f"(d16), "+f"(d17), "+f"(d18), "+f"(d19), "+f"(d20), "+f"(d21), "+f"(d22), "+f"(d23), "+f"(d24), "+f"(d25), "+f"(d26), "+f"(d27), "+f"(d28), "+f"(d29), "+f"(d30), "+f"(d31) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0_3(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, float &d16, float &d17, float &d18, float &d19, float &d20, float &d21, float &d22, float &d23, float &d24, float &d25, float &d26, float &d27, float &d28, float &d29, float &d30, float &d31, u32 a0, u32 a1, u32 a2, u32 a3) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15), "+f"(d16), "+f"(d17), "+f"(d18), "+f"(d19), "+f"(d20), "+f"(d21), "+f"(d22), "+f"(d23), "+f"(d24), "+f"(d25), "+f"(d26), "+f"(d27), "+f"(d28), "+f"(d29), "+f"(d30), "+f"(d31) : "r"(a0), "r"(a1), "r"(a2), "r"(a3) : "memory");
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

// 16464 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
attention(float scale, int B, int Sq, int H, int Sk, int KVH, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap o_map, float *__restrict__ lse, u64 lse_stride0, u64 lse_stride1, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  __shared__ __align__(1024) u8 smem[16464];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 q_map_at = (u64)&q_map;
  const u64 o_map_at = (u64)&o_map;
  const u64 lse_at = (u64)lse;
  const u64 k_map_at = (u64)&k_map;
  const u64 v_map_at = (u64)&v_map;
  float s[8];
  float max_1[2];
  float p[8];
  float rescale[2];
  float sum[2];
  float acc[32];
  float new_max[2];
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
    mbarrier_init(smem_base + 16448, 4);
    mbarrier_init(smem_base + 16440, 1);
    mbarrier_init(smem_base + 16456, 4);
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  const float c = scale * 1.442695f;
  const u32 end = min(Sk, (int)(last + 64u));
  if ((int)r3 < 4) {
    if (p2) {
      mbarrier_expect(smem_base + 16384, 8192);
      tensor_load_4d(smem_base, q_map_at, r4, 0u, h, first, b);
    }
    mbarrier_wait(smem_base + 16384, 0u);
    float f83;
    float f84;
    float f85;
    float f86;
    float f87;
    float f88;
    float f89;
    float f90;
    float f91;
    float f92;
    float f93;
    float f94;
    float f95;
    float f96;
    float f97;
    float f98;
    float f99;
    float f100;
    float f101;
    float f102;
    float f103;
    float f104;
    float f105;
    float f106;
    float f107;
    float f108;
    float f109;
    float f110;
    float f111;
    float f112;
    float f113;
    float f114;
    if ((int)end > 0) {
      mbarrier_wait(smem_base + 16400, 0u);
      // dot
      const u32 r5 = smem_base >> 4;
      wgmma_fence();
      const u64 n1 = pack_i64(r5 + 65536u, 0x40000040u);
      float f1, f2, f3, f4, f5, f6, f7, f8;
      wgmma_m64n16k16_f32_bf16_bf16_new(f1, f2, f3, f4, f5, f6, f7, f8, n1, pack_i64(r5 + 66048u, 0x40000040u));
      const u64 n2 = pack_i64(r5 + 65538u, 0x40000040u);
      wgmma_m64n16k16_f32_bf16_bf16(f1, f2, f3, f4, f5, f6, f7, f8, n2, pack_i64(r5 + 66050u, 0x40000040u));
      const u64 n3 = pack_i64(r5 + 65540u, 0x40000040u);
      wgmma_m64n16k16_f32_bf16_bf16(f1, f2, f3, f4, f5, f6, f7, f8, n3, pack_i64(r5 + 66052u, 0x40000040u));
      const u64 n4 = pack_i64(r5 + 65542u, 0x40000040u);
      wgmma_m64n16k16_f32_bf16_bf16(f1, f2, f3, f4, f5, f6, f7, f8, n4, pack_i64(r5 + 66054u, 0x40000040u));
      wgmma_commit_group_sync_aligned();
      wgmma_wait_0(f1, f2, f3, f4, f5, f6, f7, f8);
      __syncwarp();
      if (p1) {
        mbarrier_arrive(smem_base + 16416);
      }
      const u32 r6 = (tid & 3u) << 1;
      const u32 r7 = r6 + 1u;
      const u32 r8 = r6 + 8u;
      const u32 r9 = r6 + 9u;
      const bool p3 = (int)r6 < Sk;
      const bool p4 = (int)r7 < Sk;
      const bool p5 = (int)r8 < Sk;
      const bool p6 = (int)r9 < Sk;
      const u32 r10 = (((tid >> 2) & 7u) ^ (r3 << 4)) + last;
      const u32 r11 = r10 + 8u;
      // s = select
      s[0] = (int)r10 >= (int)r6 && p3 ? f1 : __uint_as_float(0xff800000u);
      s[1] = (int)r10 >= (int)r7 && p4 ? f2 : __uint_as_float(0xff800000u);
      s[2] = (int)r11 >= (int)r6 && p3 ? f3 : __uint_as_float(0xff800000u);
      s[3] = (int)r11 >= (int)r7 && p4 ? f4 : __uint_as_float(0xff800000u);
      s[4] = (int)r10 >= (int)r8 && p5 ? f5 : __uint_as_float(0xff800000u);
      s[5] = (int)r10 >= (int)r9 && p6 ? f6 : __uint_as_float(0xff800000u);
      s[6] = (int)r11 >= (int)r8 && p5 ? f7 : __uint_as_float(0xff800000u);
      s[7] = (int)r11 >= (int)r9 && p6 ? f8 : __uint_as_float(0xff800000u);
      // reduce
      const float f9 = fmaxf(s[0], s[4]);
      const float f10 = fmaxf(s[1], s[5]);
      const float f11 = fmaxf(f9, f10);
      const float f12 = __shfl_xor_sync(0xffffffffu, f11, 1);
      const float f13 = fmaxf(f11, f12);
      const float f14 = __shfl_xor_sync(0xffffffffu, f13, 2);
      const float f15 = fmaxf(s[2], s[6]);
      const float f16 = fmaxf(s[3], s[7]);
      const float f17 = fmaxf(f15, f16);
      const float f18 = __shfl_xor_sync(0xffffffffu, f17, 1);
      const float f19 = fmaxf(f17, f18);
      const float f20 = __shfl_xor_sync(0xffffffffu, f19, 2);
      max_1[0] = fmaxf(__uint_as_float(0xff800000u), fmaxf(f13, f14));
      max_1[1] = fmaxf(__uint_as_float(0xff800000u), fmaxf(f19, f20));
      const bool p7 = max_1[0] == __uint_as_float(0xff800000u);
      const bool p8 = max_1[1] == __uint_as_float(0xff800000u);
      // select
      const float f21 = p7 ? 0.0f : max_1[0];
      const float f22 = p8 ? 0.0f : max_1[1];
      const float f23 = -(f21 * c);
      const float f24 = -(f22 * c);
      const float f25 = fmaf(s[0], c, f23);
      const float f26 = fmaf(s[1], c, f23);
      const float f27 = fmaf(s[2], c, f24);
      const float f28 = fmaf(s[3], c, f24);
      const float f29 = fmaf(s[4], c, f23);
      const float f30 = fmaf(s[5], c, f23);
      const float f31 = fmaf(s[6], c, f24);
      const float f32 = fmaf(s[7], c, f24);
      // p = exp2
      p[0] = ex2(f25);
      p[1] = ex2(f26);
      p[2] = ex2(f27);
      p[3] = ex2(f28);
      p[4] = ex2(f29);
      p[5] = ex2(f30);
      p[6] = ex2(f31);
      p[7] = ex2(f32);
      // rescale = exp2
      rescale[0] = ex2((__uint_as_float(0xff800000u) - f21) * c);
      rescale[1] = ex2((__uint_as_float(0xff800000u) - f22) * c);
      u32 h1 = cvt_bf16x2(p[1], p[0]);
      u32 h2 = cvt_bf16x2(p[3], p[2]);
      u32 h3 = cvt_bf16x2(p[5], p[4]);
      u32 h4 = cvt_bf16x2(p[7], p[6]);
      // reduce
      const float f33 = p[0] + p[4];
      const float f34 = p[1] + p[5];
      const float f35 = f33 + f34;
      const float f36 = __shfl_xor_sync(0xffffffffu, f35, 1);
      const float f37 = f35 + f36;
      const float f38 = __shfl_xor_sync(0xffffffffu, f37, 2);
      const float f39 = p[2] + p[6];
      const float f40 = p[3] + p[7];
      const float f41 = f39 + f40;
      const float f42 = __shfl_xor_sync(0xffffffffu, f41, 1);
      const float f43 = f41 + f42;
      const float f44 = __shfl_xor_sync(0xffffffffu, f43, 2);
      sum[0] = fmaf(0.0f, rescale[0], f37 + f38);
      sum[1] = fmaf(0.0f, rescale[1], f43 + f44);
      if ((int)end > 16) {
        mbarrier_wait(smem_base + 16408, 0u);
      } else {
      }
      const u32 r12 = min(max((int)(first + Sq * 0xffffffffu + Sk - 15u), 0) / 16, max((int)((u32)Sk - 16u), 0) / 16);
      const u32 r13 = ((u32)min((int)r12, (int)(max((int)(end - 16u), 0) + 15u) / 16) << 4) + 16u;
      u32 phase = 0u;
      u32 slot = 1u;
      #pragma unroll
      for (int e = 0; e < 32; ++e) {
        acc[e] = 0.0f;
      }
      #pragma unroll 1
      for (int n = 16; n < (int)end; n += 16) {
        const u32 r14 = slot << 11;
        // dot
        const u32 r15 = (smem_base + r14 + 8192u) >> 4;
        wgmma_fence();
        wgmma_m64n16k16_f32_bf16_bf16_new_2(s, n1, pack_i64(r15 + 65536u, 0x40000040u));
        wgmma_m64n16k16_f32_bf16_bf16_2(s, n2, pack_i64(r15 + 65538u, 0x40000040u));
        wgmma_m64n16k16_f32_bf16_bf16_2(s, n3, pack_i64(r15 + 65540u, 0x40000040u));
        wgmma_m64n16k16_f32_bf16_bf16_2(s, n4, pack_i64(r15 + 65542u, 0x40000040u));
        wgmma_commit_group_sync_aligned();
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
        const u32 r16 = slot + 1u;
        const u32 r17 = r16 & 1u;
        const u32 r18 = smem_base + (r17 << 3);
        const u32 r19 = phase ^ 1u;
        const bool p9 = (int)slot >= 1;
        const u32 r20 = p9 ? 1u : 0u;
        mbarrier_wait(r18 + 16432, r19 ^ r20);
        wgmma_fence_2(acc, h1, h2, h3, h4);
        wgmma_m64n64k16_f32_bf16_bf16_ra_tb(acc, h1, h2, h3, h4, pack_i64(((smem_base + (r17 << 11)) >> 4) + 0x800300u, 0x40000040u));
        wgmma_commit_group_sync_aligned();
        wgmma_wait_1(s);
        const u32 r21 = slot << 3;
        __syncwarp();
        if (p1) {
          mbarrier_arrive(smem_base + r21 + 16416);
        }
        if (n < (int)r13) {
        } else {
          const u32 r22 = r6 + n;
          const u32 r23 = r22 + 1u;
          const u32 r24 = r22 + 8u;
          const u32 r25 = r22 + 9u;
          const bool p10 = (int)r22 < Sk;
          const bool p11 = (int)r23 < Sk;
          const bool p12 = (int)r24 < Sk;
          const bool p13 = (int)r25 < Sk;
          // select
          s[0] = (int)r10 >= (int)r22 && p10 ? s[0] : __uint_as_float(0xff800000u);
          s[1] = (int)r10 >= (int)r23 && p11 ? s[1] : __uint_as_float(0xff800000u);
          s[2] = (int)r11 >= (int)r22 && p10 ? s[2] : __uint_as_float(0xff800000u);
          s[3] = (int)r11 >= (int)r23 && p11 ? s[3] : __uint_as_float(0xff800000u);
          s[4] = (int)r10 >= (int)r24 && p12 ? s[4] : __uint_as_float(0xff800000u);
          s[5] = (int)r10 >= (int)r25 && p13 ? s[5] : __uint_as_float(0xff800000u);
          s[6] = (int)r11 >= (int)r24 && p12 ? s[6] : __uint_as_float(0xff800000u);
          s[7] = (int)r11 >= (int)r25 && p13 ? s[7] : __uint_as_float(0xff800000u);
        }
        // reduce
        const float f45 = fmaxf(s[0], s[4]);
        const float f46 = fmaxf(s[1], s[5]);
        const float f47 = fmaxf(f45, f46);
        const float f48 = __shfl_xor_sync(0xffffffffu, f47, 1);
        const float f49 = fmaxf(f47, f48);
        const float f50 = __shfl_xor_sync(0xffffffffu, f49, 2);
        const float f51 = fmaxf(s[2], s[6]);
        const float f52 = fmaxf(s[3], s[7]);
        const float f53 = fmaxf(f51, f52);
        const float f54 = __shfl_xor_sync(0xffffffffu, f53, 1);
        const float f55 = fmaxf(f53, f54);
        const float f56 = __shfl_xor_sync(0xffffffffu, f55, 2);
        new_max[0] = fmaxf(max_1[0], fmaxf(f49, f50));
        new_max[1] = fmaxf(max_1[1], fmaxf(f55, f56));
        // select
        const float f57 = new_max[0] == __uint_as_float(0xff800000u) ? 0.0f : new_max[0];
        const float f58 = new_max[1] == __uint_as_float(0xff800000u) ? 0.0f : new_max[1];
        const float f59 = -(f57 * c);
        const float f60 = -(f58 * c);
        const float f61 = fmaf(s[0], c, f59);
        const float f62 = fmaf(s[1], c, f59);
        const float f63 = fmaf(s[2], c, f60);
        const float f64 = fmaf(s[3], c, f60);
        const float f65 = fmaf(s[4], c, f59);
        const float f66 = fmaf(s[5], c, f59);
        const float f67 = fmaf(s[6], c, f60);
        const float f68 = fmaf(s[7], c, f60);
        // p = exp2
        p[0] = ex2(f61);
        p[1] = ex2(f62);
        p[2] = ex2(f63);
        p[3] = ex2(f64);
        p[4] = ex2(f65);
        p[5] = ex2(f66);
        p[6] = ex2(f67);
        p[7] = ex2(f68);
        const float f69 = max_1[0] - f57;
        const float f70 = max_1[1] - f58;
        // rescale = exp2
        rescale[0] = ex2(f69 * c);
        rescale[1] = ex2(f70 * c);
        // reduce
        const float f71 = p[0] + p[4];
        const float f72 = p[1] + p[5];
        const float f73 = f71 + f72;
        const float f74 = __shfl_xor_sync(0xffffffffu, f73, 1);
        const float f75 = f73 + f74;
        const float f76 = __shfl_xor_sync(0xffffffffu, f75, 2);
        const float f77 = p[2] + p[6];
        const float f78 = p[3] + p[7];
        const float f79 = f77 + f78;
        const float f80 = __shfl_xor_sync(0xffffffffu, f79, 1);
        const float f81 = f79 + f80;
        const float f82 = __shfl_xor_sync(0xffffffffu, f81, 2);
        sum[0] = fmaf(sum[0], rescale[0], f75 + f76);
        sum[1] = fmaf(sum[1], rescale[1], f81 + f82);
        if ((int)(n + 16u) < (int)end) {
          const u32 r26 = phase ^ r20;
          mbarrier_wait(r18 + 16400, r26);
        } else {
        }
        wgmma_wait_0_2(acc, h1, h2, h3, h4);
        __syncwarp();
        if (p1) {
          mbarrier_arrive(r18 + 16448);
        }
        h1 = cvt_bf16x2(p[1], p[0]);
        h2 = cvt_bf16x2(p[3], p[2]);
        h3 = cvt_bf16x2(p[5], p[4]);
        h4 = cvt_bf16x2(p[7], p[6]);
        const bool p14 = slot == 1u;
        phase = phase ^ (p14 ? 1u : 0u);
        max_1[0] = new_max[0];
        max_1[1] = new_max[1];
        slot = r17;
      }
      f83 = acc[0] * rescale[0];
      f84 = acc[1] * rescale[0];
      f85 = acc[2] * rescale[1];
      f86 = acc[3] * rescale[1];
      f87 = acc[4] * rescale[0];
      f88 = acc[5] * rescale[0];
      f89 = acc[6] * rescale[1];
      f90 = acc[7] * rescale[1];
      f91 = acc[8] * rescale[0];
      f92 = acc[9] * rescale[0];
      f93 = acc[10] * rescale[1];
      f94 = acc[11] * rescale[1];
      f95 = acc[12] * rescale[0];
      f96 = acc[13] * rescale[0];
      f97 = acc[14] * rescale[1];
      f98 = acc[15] * rescale[1];
      f99 = acc[16] * rescale[0];
      f100 = acc[17] * rescale[0];
      f101 = acc[18] * rescale[1];
      f102 = acc[19] * rescale[1];
      f103 = acc[20] * rescale[0];
      f104 = acc[21] * rescale[0];
      f105 = acc[22] * rescale[1];
      f106 = acc[23] * rescale[1];
      f107 = acc[24] * rescale[0];
      f108 = acc[25] * rescale[0];
      f109 = acc[26] * rescale[1];
      f110 = acc[27] * rescale[1];
      f111 = acc[28] * rescale[0];
      f112 = acc[29] * rescale[0];
      f113 = acc[30] * rescale[1];
      f114 = acc[31] * rescale[1];
      const u32 r27 = slot + 1u;
      const u32 r28 = r27 & 1u;
      const u32 r29 = smem_base + (r28 << 3);
      const u32 r30 = phase ^ 1u;
      const bool p15 = (int)slot >= 1;
      mbarrier_wait(r29 + 16432, r30 ^ (p15 ? 1u : 0u));
      // dot
      wgmma_fence_3(f83, f84, f85, f86, f87, f88, f89, f90, f91, f92, f93, f94, f95, f96, f97, f98, f99, f100, f101, f102, f103, f104, f105, f106, f107, f108, f109, f110, f111, f112, f113, f114, h1, h2, h3, h4);
      wgmma_m64n64k16_f32_bf16_bf16_ra_tb_2(f83, f84, f85, f86, f87, f88, f89, f90, f91, f92, f93, f94, f95, f96, f97, f98, f99, f100, f101, f102, f103, f104, f105, f106, f107, f108, f109, f110, f111, f112, f113, f114, h1, h2, h3, h4, pack_i64(((smem_base + (r28 << 11)) >> 4) + 0x800300u, 0x40000040u));
      wgmma_commit_group_sync_aligned();
      wgmma_wait_0_3(f83, f84, f85, f86, f87, f88, f89, f90, f91, f92, f93, f94, f95, f96, f97, f98, f99, f100, f101, f102, f103, f104, f105, f106, f107, f108, f109, f110, f111, f112, f113, f114, h1, h2, h3, h4);
      __syncwarp();
      if (p1) {
        mbarrier_arrive(r29 + 16448);
      }
    } else {
      f83 = 0.0f;
      f84 = 0.0f;
      f85 = 0.0f;
      f86 = 0.0f;
      f87 = 0.0f;
      f88 = 0.0f;
      f89 = 0.0f;
      f90 = 0.0f;
      f91 = 0.0f;
      f92 = 0.0f;
      f93 = 0.0f;
      f94 = 0.0f;
      f95 = 0.0f;
      f96 = 0.0f;
      f97 = 0.0f;
      f98 = 0.0f;
      f99 = 0.0f;
      f100 = 0.0f;
      f101 = 0.0f;
      f102 = 0.0f;
      f103 = 0.0f;
      f104 = 0.0f;
      f105 = 0.0f;
      f106 = 0.0f;
      f107 = 0.0f;
      f108 = 0.0f;
      f109 = 0.0f;
      f110 = 0.0f;
      f111 = 0.0f;
      f112 = 0.0f;
      f113 = 0.0f;
      f114 = 0.0f;
      max_1[0] = __uint_as_float(0xff800000u);
      max_1[1] = __uint_as_float(0xff800000u);
      sum[0] = 0.0f;
      sum[1] = 0.0f;
    }
    const bool p16 = sum[0] == 0.0f;
    const bool p17 = sum[1] == 0.0f;
    // select
    const float f115 = p16 ? 1.0f : sum[0];
    const float f116 = p17 ? 1.0f : sum[1];
    const float f117 = rcp(f115);
    const float f118 = rcp(f116);
    const float f119 = f83 * f117;
    const float f120 = f84 * f117;
    const float f121 = f85 * f118;
    const float f122 = f86 * f118;
    const float f123 = f87 * f117;
    const float f124 = f88 * f117;
    const float f125 = f89 * f118;
    const float f126 = f90 * f118;
    const float f127 = f91 * f117;
    const float f128 = f92 * f117;
    const float f129 = f93 * f118;
    const float f130 = f94 * f118;
    const float f131 = f95 * f117;
    const float f132 = f96 * f117;
    const float f133 = f97 * f118;
    const float f134 = f98 * f118;
    const float f135 = f99 * f117;
    const float f136 = f100 * f117;
    const float f137 = f101 * f118;
    const float f138 = f102 * f118;
    const float f139 = f103 * f117;
    const float f140 = f104 * f117;
    const float f141 = f105 * f118;
    const float f142 = f106 * f118;
    const float f143 = f107 * f117;
    const float f144 = f108 * f117;
    const float f145 = f109 * f118;
    const float f146 = f110 * f118;
    const float f147 = f111 * f117;
    const float f148 = f112 * f117;
    const float f149 = f113 * f118;
    const float f150 = f114 * f118;
    // store o
    bar_sync(1u, 128);
    const u32 r31 = smem_base + (r3 << 11);
    const bool p18 = elect();
    const u32 r32 = r3 << 4;
    const u32 r33 = ((tid >> 3) & 1u) << 10;
    const u32 r34 = ((tid & 7u) * 144u) ^ (((tid >> 4) & 1u) << 4);
    stmatrix_x4(r31 + (r34 + r33), cvt_bf16x2(f120, f119), cvt_bf16x2(f122, f121), cvt_bf16x2(f124, f123), cvt_bf16x2(f126, f125));
    stmatrix_x4(r31 + ((r34 ^ 32u) + r33), cvt_bf16x2(f128, f127), cvt_bf16x2(f130, f129), cvt_bf16x2(f132, f131), cvt_bf16x2(f134, f133));
    stmatrix_x4(r31 + ((r34 ^ 64u) + r33), cvt_bf16x2(f136, f135), cvt_bf16x2(f138, f137), cvt_bf16x2(f140, f139), cvt_bf16x2(f142, f141));
    stmatrix_x4(r31 + ((r34 ^ 96u) + r33), cvt_bf16x2(f144, f143), cvt_bf16x2(f146, f145), cvt_bf16x2(f148, f147), cvt_bf16x2(f150, f149));
    fence_proxy_async_shared_cta();
    __syncwarp();
    const u32 r35 = first + r32;
    if (p18) {
      tensor_store_4d(r31, o_map_at, 0u, h, r35, b);
      cp_async_bulk_commit();
    }
    cp_async_bulk_wait_read<0>();
    const bool p19 = sum[0] < 1.1754944e-38f;
    const float f151 = sum[0] * 4.2949673e+09f;
    const float f152 = p19 ? f151 : sum[0];
    const float f153 = lg2(f152);
    const bool p20 = sum[1] < 1.1754944e-38f;
    const float f154 = sum[1] * 4.2949673e+09f;
    const float f155 = p20 ? f154 : sum[1];
    const float f156 = lg2(f155);
    const float f157 = fmaf(max_1[0], scale, (p19 ? f153 - 32.0f : f153) * 0.6931472f);
    const float f158 = fmaf(max_1[1], scale, (p20 ? f156 - 32.0f : f156) * 0.6931472f);
    // store lse
    const u64 at1 = lse_at + (i64)(int)b * (lse_stride0 << 2) + (i64)(int)h * (lse_stride1 << 2);
    const u32 r36 = ((tid >> 2) & 7u) ^ r32;
    const u64 at2 = at1 + (i64)(int)first * 4 + (i64)(int)r36 * 4;
    const u32 r37 = Sq - (first + r36);
    const bool p21 = (tid & 3u) == 0u;
    if (p21 && (int)r37 > 0) {
      st_global_f32(at2, p16 ? __uint_as_float(0xff800000u) : f157);
    }
    if (p21 && (int)r37 > 8) {
      st_global_f32(at2 + 32, p17 ? __uint_as_float(0xff800000u) : f158);
    }
  } else {
    if (r3 == 4u) {
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int n_1 = 0; n_1 < (int)end; n_1 += 16) {
        const u32 r38 = slot_1 << 3;
        const u32 r39 = smem_base + r38;
        const u32 r40 = r39 + 16400u;
        const bool p22 = elect();
        if (p22) {
          const u32 r41 = phase_1 ^ 1u;
          mbarrier_wait(r39 + 16416, r41);
          mbarrier_expect(r39 + 16400, 2048);
          const u32 r42 = slot_1 << 11;
          tensor_load_4d(smem_base + r42 + 8192, k_map_at, r40, 0u, kv_head, (u32)n_1, b);
        }
        const u32 r43 = r39 + 16432u;
        const bool p23 = elect();
        if (p23) {
          const u32 r44 = phase_1 ^ 1u;
          mbarrier_wait(r39 + 16448, r44);
          mbarrier_expect(r39 + 16432, 2048);
          const u32 r45 = slot_1 << 11;
          tensor_load_4d(smem_base + r45 + 12288, v_map_at, r43, 0u, kv_head, (u32)n_1, b);
        }
        const bool p24 = slot_1 == 1u;
        phase_1 = phase_1 ^ (p24 ? 1u : 0u);
        const u32 r46 = slot_1 + 1u;
        slot_1 = r46 & 1u;
      }
    }
  }
}
