// For sm_90a.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct __align__(64) TensorMap { u8 bytes[128]; };

extern __shared__ __align__(1024) u8 smem[];

static __device__ __forceinline__ u32 read_cluster_ctarank() {
  u32 d;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(d) : );
  return d;
}

static __device__ __forceinline__ void mbarrier_init(u32 at, u32 n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" :  :  : "memory");
}

static __device__ __forceinline__ void barrier_cluster_arrive_release() {
  asm volatile("barrier.cluster.arrive.release;" :  :  : "memory");
}

static __device__ __forceinline__ void barrier_cluster_wait_acquire() {
  asm volatile("barrier.cluster.wait.acquire;" :  :  : "memory");
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

static __device__ __forceinline__ void wgmma_m64n64k16_f32_bf16_bf16_tb(float (&d0)[32], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) : "l"(a0), "l"(b) : "memory");
}

static __device__ __forceinline__ void wgmma_commit_group_sync_aligned() {
  asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory");
}

static __device__ __forceinline__ void wgmma_wait_1() {
  asm volatile("wgmma.wait_group.sync.aligned 1;" :  :  : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive_at(u32 at, u32 block) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" :  : "r"(at), "r"(block) : "memory");
}

static __device__ __forceinline__ void wgmma_wait_0(float (&d0)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]), "+f"(d0[16]), "+f"(d0[17]), "+f"(d0[18]), "+f"(d0[19]), "+f"(d0[20]), "+f"(d0[21]), "+f"(d0[22]), "+f"(d0[23]), "+f"(d0[24]), "+f"(d0[25]), "+f"(d0[26]), "+f"(d0[27]), "+f"(d0[28]), "+f"(d0[29]), "+f"(d0[30]), "+f"(d0[31]) :  : "memory");
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ bool elect() {
  u32 d;
  asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p; }" : "=r"(d) : );
  return d != 0;
}

template <int N> static __device__ __forceinline__ void cp_async_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(N) : "memory");
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

static __device__ __forceinline__ void mbarrier_expect(u32 at, u32 n) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void tensor_load_2d(u32 to, u64 map, u32 mbar, u32 c0, u32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :  : "r"(to), "l"(map), "r"(mbar), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void tensor_load_2d_multicast(u32 to, u64 map, u32 mbar, u32 c0, u32 c1, u16 blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" :  : "r"(to), "l"(map), "r"(mbar), "r"(c0), "r"(c1), "h"(blocks) : "memory");
}

// 65568 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(384)
__cluster_dims__(2, 1, 1)
gemm(int M, int N, int K, const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u32 blocks_x = gridDim.x;
  const u64 c_map_at = (u64)&c_map;
  const u64 a_map_at = (u64)&a_map;
  const u64 b_map_at = (u64)&b_map;
  const u32 cluster_ctarank = read_cluster_ctarank();
  float sum[32];
  const u32 r1 = (N + 63u) >> 6;
  const u32 r2 = block_x & 1u;
  const u32 r3 = block_x >> 1;
  const u32 r4 = (((M + 127u) >> 7) + 1u) >> 1;
  const u32 r5 = tid & 31u;
  const u32 r6 = tid >> 5;
  const bool p1 = r6 == 0u && r5 == 0u;
  if (p1) {
    mbarrier_init(smem_base + 65536, 1);
    mbarrier_init(smem_base + 65552, 16);
    mbarrier_init(smem_base + 65544, 1);
    mbarrier_init(smem_base + 65560, 16);
  }
  fence_proxy_async_shared_cta();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if ((int)r6 < 8) {
    const u32 r7 = r4 * r1;
    const u32 r8 = blocks_x >> 1;
    const u32 r9 = min((int)r4, 4);
    const u32 r10 = r9 * r1;
    // dot
    const u32 r11 = (tid >> 7) << 13;
    const bool p2 = (int)r5 < 2;
    const u32 r12 = tid & 1u;
    // store c
    const u32 r13 = smem_base + (r6 << 11);
    const u32 r14 = r6 << 4;
    const u32 r15 = ((tid >> 3) & 1u) << 10;
    const u32 r16 = ((tid & 7u) * 144u) ^ (((tid >> 4) & 1u) << 4);
    const u32 r17 = r13 + (r16 + r15);
    const u32 r18 = r13 + ((r16 ^ 32u) + r15);
    const u32 r19 = r13 + ((r16 ^ 64u) + r15);
    const u32 r20 = r13 + ((r16 ^ 96u) + r15);
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll 1
    for (int tile = (int)r3; tile < (int)r7; tile += (int)r8) {
      const u32 r21 = (u32)tile / r10 * r9;
      const u32 r22 = min((int)(r4 - r21), (int)r9);
      const u32 r23 = (u32)tile % r10;
      const u32 j = r23 / r22;
      const u32 i = ((r21 + r23 % r22) << 1) + r2;
      const u32 row = i << 7;
      const u32 col = j << 6;
      u32 it = 0u;
      #pragma unroll
      for (int e = 0; e < 32; ++e) {
        sum[e] = 0.0f;
      }
      #pragma unroll 1
      for (int k = 0; k < K; k += 64) {
        const u32 r24 = slot << 3;
        mbarrier_wait(smem_base + r24 + 65536, phase);
        const u32 r25 = slot << 14;
        const u32 r26 = slot << 13;
        // dot
        const u32 r27 = ((smem_base + r26 + 32768u) & 262143u) >> 4;
        const u32 r28 = ((smem_base + r25 + r11) & 262143u) >> 4;
        wgmma_fence();
        wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r28 + 65536u, 0x40000040u), pack_i64(r27 + 0x2000000u, 0x40000040u));
        wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r28 + 65538u, 0x40000040u), pack_i64(r27 + 0x2000080u, 0x40000040u));
        wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r28 + 65540u, 0x40000040u), pack_i64(r27 + 0x2000100u, 0x40000040u));
        wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r28 + 65542u, 0x40000040u), pack_i64(r27 + 0x2000180u, 0x40000040u));
        wgmma_commit_group_sync_aligned();
        const bool p3 = (int)it > 0;
        wgmma_wait_1();
        const u32 r29 = slot + 1u;
        const u32 r30 = r29 & 1u;
        __syncwarp();
        if (p3 && p2) {
          mbarrier_arrive_at(smem_base + (r30 << 3) + 65552u, r12);
        }
        it = it + 1u;
        const bool p4 = slot == 1u;
        phase = phase ^ (p4 ? 1u : 0u);
        slot = r30;
      }
      wgmma_wait_0(sum);
      const bool p5 = (int)it > 0;
      const u32 r31 = slot + 1u;
      __syncwarp();
      if (p5 && p2) {
        mbarrier_arrive_at(smem_base + ((r31 & 1u) << 3) + 65552u, r12);
      }
      const u32 h1 = cvt_bf16x2(sum[1], sum[0]);
      const u32 h2 = cvt_bf16x2(sum[3], sum[2]);
      const u32 h3 = cvt_bf16x2(sum[5], sum[4]);
      const u32 h4 = cvt_bf16x2(sum[7], sum[6]);
      const u32 h5 = cvt_bf16x2(sum[9], sum[8]);
      const u32 h6 = cvt_bf16x2(sum[11], sum[10]);
      const u32 h7 = cvt_bf16x2(sum[13], sum[12]);
      const u32 h8 = cvt_bf16x2(sum[15], sum[14]);
      const u32 h9 = cvt_bf16x2(sum[17], sum[16]);
      const u32 h10 = cvt_bf16x2(sum[19], sum[18]);
      const u32 h11 = cvt_bf16x2(sum[21], sum[20]);
      const u32 h12 = cvt_bf16x2(sum[23], sum[22]);
      const u32 h13 = cvt_bf16x2(sum[25], sum[24]);
      const u32 h14 = cvt_bf16x2(sum[27], sum[26]);
      const u32 h15 = cvt_bf16x2(sum[29], sum[28]);
      const u32 h16 = cvt_bf16x2(sum[31], sum[30]);
      // store c
      const bool p6 = elect();
      cp_async_bulk_wait_read<0>();
      __syncwarp();
      stmatrix_x4(r17 + 49152, h1, h2, h3, h4);
      stmatrix_x4(r18 + 49152, h5, h6, h7, h8);
      stmatrix_x4(r19 + 49152, h9, h10, h11, h12);
      stmatrix_x4(r20 + 49152, h13, h14, h15, h16);
      fence_proxy_async_shared_cta();
      __syncwarp();
      const u32 r32 = row + r14;
      if (p6) {
        tensor_store_2d(r13 + 49152, c_map_at, col, r32);
        cp_async_bulk_commit();
      }
    }
    cp_async_bulk_wait_read<0>();
  } else {
    if (r6 == 8u) {
      const u32 r33 = r4 * r1;
      const u32 r34 = blocks_x >> 1;
      const u32 r35 = min((int)r4, 4);
      const u32 r36 = r35 * r1;
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int tile_1 = (int)r3; tile_1 < (int)r33; tile_1 += (int)r34) {
        const u32 r37 = (u32)tile_1 / r36 * r35;
        const u32 r38 = min((int)(r4 - r37), (int)r35);
        const u32 r39 = (u32)tile_1 % r36;
        const u32 j_1 = r39 / r38;
        const u32 i_1 = ((r37 + r39 % r38) << 1) + r2;
        const u32 row_1 = i_1 << 7;
        const u32 col_1 = j_1 << 6;
        #pragma unroll 1
        for (int k_1 = 0; k_1 < K; k_1 += 64) {
          const u32 r40 = slot_1 << 3;
          const u32 r41 = smem_base + r40;
          const u32 r42 = r41 + 65536u;
          const bool p7 = elect();
          if (p7) {
            const u32 r43 = phase_1 ^ 1u;
            mbarrier_wait(r41 + 65552, r43);
            mbarrier_expect(r41 + 65536, 24576);
            const u32 r44 = slot_1 << 14;
            tensor_load_2d(smem_base + r44, a_map_at, r42, (u32)k_1, row_1);
            const u32 r45 = slot_1 << 13;
            tensor_load_2d_multicast(smem_base + r45 + (cluster_ctarank << 12) + 32768, b_map_at, r42, col_1, k_1 + (cluster_ctarank << 5), 3);
          }
          const bool p8 = slot_1 == 1u;
          phase_1 = phase_1 ^ (p8 ? 1u : 0u);
          const u32 r46 = slot_1 + 1u;
          slot_1 = r46 & 1u;
        }
      }
    }
  }
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
}
