// For sm_90a.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct __align__(64) TensorMap { u8 bytes[128]; };

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

static __device__ __forceinline__ void wgmma_m64n32k16_f32_bf16_bf16_tb(float (&d0)[16], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]) : "l"(a0), "l"(b) : "memory");
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

static __device__ __forceinline__ void wgmma_wait_0(float (&d0)[16]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]) :  : "memory");
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

static __device__ __forceinline__ void tensor_load_2d_multicast(u32 to, u64 map, u32 mbar, u32 c0, u32 c1, u16 blocks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" :  : "r"(to), "l"(map), "r"(mbar), "r"(c0), "r"(c1), "h"(blocks) : "memory");
}

// 36912 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
__cluster_dims__(2, 1, 1)
gemm(int M, int N, int K, const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  __shared__ __align__(1024) u8 smem[36912];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 c_map_at = (u64)&c_map;
  const u64 a_map_at = (u64)&a_map;
  const u64 b_map_at = (u64)&b_map;
  const u32 cluster_ctarank = read_cluster_ctarank();
  float sum[16];
  const u32 r1 = block_x >> 1;
  const u32 r2 = (((M + 63u) >> 6) + 1u) >> 1;
  const u32 r3 = min((int)r2, 4);
  const u32 r4 = r3 * ((N + 31u) >> 5);
  const u32 r5 = r1 / r4 * r3;
  const u32 r6 = min((int)(r2 - r5), (int)r3);
  const u32 r7 = r1 % r4;
  const u32 j = r7 / r6;
  const u32 i = ((r5 + r7 % r6) << 1) + (block_x & 1u);
  const u32 row = i << 6;
  const u32 col = j << 5;
  const u32 r8 = tid & 31u;
  const u32 r9 = tid >> 5;
  const bool p1 = r9 == 0u && r8 == 0u;
  if (p1) {
    mbarrier_init(smem_base + 36864, 1);
    mbarrier_init(smem_base + 36888, 8);
    mbarrier_init(smem_base + 36872, 1);
    mbarrier_init(smem_base + 36896, 8);
    mbarrier_init(smem_base + 36880, 1);
    mbarrier_init(smem_base + 36904, 8);
  }
  fence_proxy_async_shared_cta();
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
  if ((int)r9 < 4) {
    const bool p2 = (int)r8 < 2;
    const u32 r10 = tid & 1u;
    u32 it = 0u;
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll
    for (int e = 0; e < 16; ++e) {
      sum[e] = 0.0f;
    }
    #pragma unroll 1
    for (int k = 0; k < K; k += 64) {
      const u32 r11 = slot << 3;
      mbarrier_wait(smem_base + r11 + 36864, phase);
      const u32 r12 = slot << 13;
      const u32 r13 = slot << 12;
      // dot
      const u32 r14 = ((smem_base + r13 + 24576u) & 262143u) >> 4;
      const u32 r15 = ((smem_base + r12) & 262143u) >> 4;
      wgmma_fence();
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r15 + 65536u, 0x40000040u), pack_i64(r14 + 0x1000000u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r15 + 65538u, 0x40000040u), pack_i64(r14 + 0x1000040u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r15 + 65540u, 0x40000040u), pack_i64(r14 + 0x1000080u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r15 + 65542u, 0x40000040u), pack_i64(r14 + 0x10000c0u, 0x80000020u));
      wgmma_commit_group_sync_aligned();
      const bool p3 = (int)it > 0;
      wgmma_wait_1();
      const u32 r16 = slot + 2u;
      const u32 r17 = slot - 1u;
      __syncwarp();
      if (p3 && p2) {
        mbarrier_arrive_at(smem_base + (((int)r16 >= 3 ? r17 : r16) << 3) + 36888u, r10);
      }
      it = it + 1u;
      const bool p4 = slot == 2u;
      phase = phase ^ (p4 ? 1u : 0u);
      const u32 r18 = slot + 1u;
      const u32 r19 = slot - 2u;
      slot = (int)r18 >= 3 ? r19 : r18;
    }
    wgmma_wait_0(sum);
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
    const u32 r20 = smem_base + (r9 << 10);
    const bool p5 = elect();
    const u32 r21 = ((tid >> 3) & 1u) << 9;
    const u32 r22 = ((r10 << 6) ^ (((tid >> 1) & 3u) * 144u)) ^ (((tid >> 4) & 1u) << 4);
    stmatrix_x4(r20 + (r22 + r21), h1, h2, h3, h4);
    stmatrix_x4(r20 + ((r22 ^ 32u) + r21), h5, h6, h7, h8);
    fence_proxy_async_shared_cta();
    __syncwarp();
    const u32 r23 = row + (r9 << 4);
    if (p5) {
      tensor_store_2d(r20, c_map_at, col, r23);
      cp_async_bulk_commit();
    }
    cp_async_bulk_wait_read<0>();
  } else {
    if (r9 == 4u) {
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int k_1 = 0; k_1 < K; k_1 += 64) {
        const u32 r24 = slot_1 << 3;
        const u32 r25 = smem_base + r24;
        const u32 r26 = r25 + 36864u;
        const bool p6 = elect();
        if (p6) {
          const u32 r27 = phase_1 ^ 1u;
          mbarrier_wait(r25 + 36888, r27);
          mbarrier_expect(r25 + 36864, 12288);
          const u32 r28 = slot_1 << 13;
          tensor_load_2d(smem_base + r28, a_map_at, r26, (u32)k_1, row);
          const u32 r29 = slot_1 << 12;
          tensor_load_2d_multicast(smem_base + r29 + (cluster_ctarank << 11) + 24576, b_map_at, r26, col, k_1 + (cluster_ctarank << 5), 3);
        }
        const bool p7 = slot_1 == 2u;
        phase_1 = phase_1 ^ (p7 ? 1u : 0u);
        const u32 r30 = slot_1 + 1u;
        const u32 r31 = slot_1 - 2u;
        slot_1 = (int)r30 >= 3 ? r31 : r30;
      }
    }
  }
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
}
