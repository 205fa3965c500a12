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

static __device__ __forceinline__ void wgmma_m64n32k32_f32_e4m3_e4m3_new(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 0, 1, 1;" : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3), "=f"(d4), "=f"(d5), "=f"(d6), "=f"(d7), "=f"(d8), "=f"(d9), "=f"(d10), "=f"(d11), "=f"(d12), "=f"(d13), "=f"(d14), "=f"(d15) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_m64n32k32_f32_e4m3_e4m3(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_commit_group_sync_aligned() {
  asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0(float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15) :  : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :  : "r"(at) : "memory");
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
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

static __device__ __forceinline__ void tensor_store_2d(u32 from, u64 map, u32 c0, u32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];" :  : "r"(from), "l"(map), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void cp_async_bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" :  :  : "memory");
}

template <int N> static __device__ __forceinline__ void cp_async_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory");
}

static __device__ __forceinline__ void mbarrier_expect(u32 at, u32 n) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void tensor_load_2d(u32 to, u64 map, u32 mbar, u32 c0, u32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :  : "r"(to), "l"(map), "r"(mbar), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4_trans(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ u32 prmt(u32 a, u32 b, u32 c) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// 16480 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
gemm(int M, int N, int K, const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap b_map, const __grid_constant__ TensorMap a_map) {
  __shared__ __align__(512) u8 smem[16480];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 c_map_at = (u64)&c_map;
  const u64 b_map_at = (u64)&b_map;
  const u64 a_map_at = (u64)&a_map;
  float sum[16];
  const u32 r1 = (M + 63u) >> 6;
  const u32 r2 = min((int)r1, 8);
  const u32 r3 = r2 * ((N + 31u) >> 5);
  const u32 r4 = block_x / r3 * r2;
  const u32 r5 = min((int)(r1 - r4), (int)r2);
  const u32 r6 = block_x % r3;
  const u32 i = r4 + r6 % r5;
  const u32 j = r6 / r5;
  const u32 row = i << 6;
  const u32 col = j << 5;
  const bool p1 = (tid & 31u) == 0u;
  const u32 r7 = tid >> 5;
  const bool p2 = r7 == 0u && p1;
  if (p2) {
    mbarrier_init(smem_base + 16384, 1);
    mbarrier_init(smem_base + 16400, 4);
    mbarrier_init(smem_base + 16392, 1);
    mbarrier_init(smem_base + 16408, 4);
    mbarrier_init(smem_base + 16416, 1);
    mbarrier_init(smem_base + 16432, 2);
    mbarrier_init(smem_base + 16424, 1);
    mbarrier_init(smem_base + 16440, 2);
    mbarrier_init(smem_base + 16448, 2);
    mbarrier_init(smem_base + 16464, 4);
    mbarrier_init(smem_base + 16456, 2);
    mbarrier_init(smem_base + 16472, 4);
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  if ((int)r7 < 4) {
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll
    for (int e = 0; e < 16; ++e) {
      sum[e] = 0.0f;
    }
    #pragma unroll 1
    for (int k = 0; k < K; k += 64) {
      const u32 r8 = slot << 3;
      const u32 r9 = smem_base + r8;
      mbarrier_wait(r9 + 16448, phase);
      const u32 r10 = slot << 11;
      mbarrier_wait(r9 + 16384, phase);
      const u32 r11 = slot << 12;
      // dot
      const u32 r12 = (smem_base + r10 + 8192u) >> 4;
      const u32 r13 = (smem_base + r11) >> 4;
      wgmma_fence();
      float f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16;
      wgmma_m64n32k32_f32_e4m3_e4m3_new(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, pack_i64(r13 + 65536u, 0x80000020u), pack_i64(r12 + 65536u, 0x80000020u));
      wgmma_m64n32k32_f32_e4m3_e4m3(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, pack_i64(r13 + 65538u, 0x80000020u), pack_i64(r12 + 65538u, 0x80000020u));
      wgmma_commit_group_sync_aligned();
      wgmma_wait_0(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16);
      __syncwarp();
      if (p1) {
        mbarrier_arrive(r9 + 16464);
      }
      __syncwarp();
      if (p1) {
        mbarrier_arrive(r9 + 16400);
      }
      sum[0] = sum[0] + f1;
      sum[1] = sum[1] + f2;
      sum[2] = sum[2] + f3;
      sum[3] = sum[3] + f4;
      sum[4] = sum[4] + f5;
      sum[5] = sum[5] + f6;
      sum[6] = sum[6] + f7;
      sum[7] = sum[7] + f8;
      sum[8] = sum[8] + f9;
      sum[9] = sum[9] + f10;
      sum[10] = sum[10] + f11;
      sum[11] = sum[11] + f12;
      sum[12] = sum[12] + f13;
      sum[13] = sum[13] + f14;
      sum[14] = sum[14] + f15;
      sum[15] = sum[15] + f16;
      const bool p3 = slot == 1u;
      phase = phase ^ (p3 ? 1u : 0u);
      const u32 r14 = slot + 1u;
      slot = r14 & 1u;
    }
    const u32 h1 = cvt_bf16x2(sum[1], sum[0]);
    const u32 h2 = cvt_bf16x2(sum[3], sum[2]);
    const u32 h3 = cvt_bf16x2(sum[5], sum[4]);
    const u32 h4 = cvt_bf16x2(sum[7], sum[6]);
    const u32 h5 = cvt_bf16x2(sum[9], sum[8]);
    const u32 h6 = cvt_bf16x2(sum[11], sum[10]);
    const u32 h7 = cvt_bf16x2(sum[13], sum[12]);
    const u32 h8 = cvt_bf16x2(sum[15], sum[14]);
    // store c
    bar_sync(1u, 128);
    const u32 r15 = smem_base + (r7 << 10);
    const bool p4 = elect();
    const u32 r16 = ((tid >> 3) & 1u) << 9;
    const u32 r17 = (((tid & 1u) << 6) ^ (((tid >> 1) & 3u) * 144u)) ^ (((tid >> 4) & 1u) << 4);
    stmatrix_x4(r15 + (r17 + r16), h1, h2, h3, h4);
    stmatrix_x4(r15 + ((r17 ^ 32u) + r16), h5, h6, h7, h8);
    fence_proxy_async_shared_cta();
    __syncwarp();
    const u32 r18 = row + (r7 << 4);
    if (p4) {
      tensor_store_2d(r15, c_map_at, col, r18);
      cp_async_bulk_commit();
    }
    cp_async_bulk_wait_read<0>();
  } else {
    if (r7 == 4u) {
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int k_1 = 0; k_1 < K; k_1 += 64) {
        const u32 r19 = slot_1 << 3;
        const u32 r20 = smem_base + r19;
        const u32 r21 = r20 + 16416u;
        const bool p5 = elect();
        if (p5) {
          const u32 r22 = phase_1 ^ 1u;
          mbarrier_wait(r20 + 16432, r22);
          mbarrier_expect(r20 + 16416, 2048);
          const u32 r23 = slot_1 << 11;
          tensor_load_2d(smem_base + r23 + 12288, b_map_at, r21, col, (u32)k_1);
        }
        const u32 r24 = r20 + 16384u;
        const bool p6 = elect();
        if (p6) {
          const u32 r25 = phase_1 ^ 1u;
          mbarrier_wait(r20 + 16400, r25);
          mbarrier_expect(r20 + 16384, 4096);
          const u32 r26 = slot_1 << 12;
          tensor_load_2d(smem_base + r26, a_map_at, r24, (u32)k_1, row);
        }
        const bool p7 = slot_1 == 1u;
        phase_1 = phase_1 ^ (p7 ? 1u : 0u);
        const u32 r27 = slot_1 + 1u;
        slot_1 = r27 & 1u;
      }
    }
    if ((int)r7 >= 6) {
      const u32 r28 = tid & 63u;
      const u32 r29 = (r28 >> 2) & 1u;
      const u32 r30 = (r28 >> 4) & 1u;
      const u32 r31 = r29 << 6;
      const u32 r32 = (((tid & 1u) << 5) ^ (((r28 >> 1) & 1u) * 144u)) ^ r31;
      const u32 r33 = ((r28 >> 3) & 1u) << 6;
      const u32 r34 = r28 >> 5;
      const u32 r35 = (r29 << 9) + (r34 << 10);
      const u32 r36 = ((((tid & 3u) * 144u) ^ r31) ^ r33) ^ (r30 << 4);
      const bool p8 = (tid & 16u) != 0u;
      const u32 r37 = (tid & 2u) != 0u ? 17476u : 0u;
      const u32 r38 = (p8 ? 30001u : 25632u) ^ r37;
      const u32 r39 = (p8 ? 25632u : 30001u) ^ r37;
      const u32 r40 = ((r32 ^ r33) ^ (r34 << 4)) + ((r29 << 8) + (r30 << 9));
      const u32 r41 = r36 + r35;
      const u32 r42 = (r36 ^ 32u) + r35;
      u32 phase_2 = 0u;
      u32 slot_2 = 0u;
      #pragma unroll 1
      for (int k_2 = 0; k_2 < K; k_2 += 64) {
        const u32 r43 = slot_2 << 3;
        const u32 r44 = smem_base + r43;
        mbarrier_wait(r44 + 16416, phase_2);
        const u32 r45 = slot_2 << 11;
        const u32 r46 = smem_base + r45;
        const u32 r47 = phase_2 ^ 1u;
        mbarrier_wait(r44 + 16464, r47);
        const u32 r48 = r46 + r40;
        u32 r49, r50, r51, r52;
        ldmatrix_x4_trans(r49, r50, r51, r52, r48 + 12288);
        u32 r53, r54, r55, r56;
        ldmatrix_x4_trans(r53, r54, r55, r56, r48 + 13312);
        stmatrix_x4(r46 + r41 + 8192, prmt(r49, r50, r38), prmt(r49, r50, r39), prmt(r51, r52, r38), prmt(r51, r52, r39));
        stmatrix_x4(r46 + r42 + 8192, prmt(r53, r54, r38), prmt(r53, r54, r39), prmt(r55, r56, r38), prmt(r55, r56, r39));
        fence_proxy_async_shared_cta();
        __syncwarp();
        if (p1) {
          mbarrier_arrive(r44 + 16448);
        }
        __syncwarp();
        if (p1) {
          mbarrier_arrive(r44 + 16432);
        }
        const bool p9 = slot_2 == 1u;
        phase_2 = phase_2 ^ (p9 ? 1u : 0u);
        const u32 r57 = slot_2 + 1u;
        slot_2 = r57 & 1u;
      }
    }
  }
}
