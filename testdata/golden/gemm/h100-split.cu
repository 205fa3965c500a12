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

static __device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" :  :  : "memory");
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

static __device__ __forceinline__ void bar_sync(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" :  : "r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ bool elect() {
  u32 d;
  asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p; }" : "=r"(d) : );
  return d != 0;
}

static __device__ __forceinline__ void st_shared_v2_f32(u32 at, float r0, float r1) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" :  : "r"(at), "f"(r0), "f"(r1) : "memory");
}

static __device__ __forceinline__ void tensor_store_3d(u32 from, u64 map, u32 c0, u32 c1, u32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];" :  : "r"(from), "l"(map), "r"(c0), "r"(c1), "r"(c2) : "memory");
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

static __device__ __forceinline__ void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" :  :  : "memory");
}

static __device__ __forceinline__ void ld_global_v4_f32_if(float &r0, float &r1, float &r2, float &r3, u64 at, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; @p ld.global.v4.b32 {%0, %1, %2, %3}, [%4]; }" : "=f"(r0), "=f"(r1), "=f"(r2), "=f"(r3) : "l"(at), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ void st_global_v2(u64 at, u32 r0, u32 r1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" :  : "l"(at), "r"(r0), "r"(r1) : "memory");
}

// 36912 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
__cluster_dims__(2, 1, 1)
gemm_partial(int M, int N, int K, const __grid_constant__ TensorMap part_map, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  __shared__ __align__(1024) u8 smem[36912];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 part_map_at = (u64)&part_map;
  const u64 a_map_at = (u64)&a_map;
  const u64 b_map_at = (u64)&b_map;
  const u32 cluster_ctarank = read_cluster_ctarank();
  float sum[16];
  griddepcontrol_launch_dependents();
  const u32 r1 = block_x >> 1;
  const u32 r2 = (((M + 63u) >> 6) + 1u) >> 1;
  const u32 s = r1 & 1u;
  const u32 r3 = r1 >> 1;
  const u32 r4 = min((int)r2, 4);
  const u32 r5 = r4 * ((N + 31u) >> 5);
  const u32 r6 = r3 / r5 * r4;
  const u32 r7 = min((int)(r2 - r6), (int)r4);
  const u32 r8 = r3 % r5;
  const u32 j = r8 / r7;
  const u32 i = ((r6 + r8 % r7) << 1) + (block_x & 1u);
  const u32 row = i << 6;
  const u32 col = j << 5;
  const u32 r9 = ((u32)((int)((int)(K + 63u) / 64 + 1u) / 2)) << 6;
  const u32 r10 = s * r9;
  const u32 r11 = min(K, (int)(r10 + r9));
  const u32 r12 = tid & 31u;
  const u32 r13 = tid >> 5;
  const bool p1 = r13 == 0u && r12 == 0u;
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
  if ((int)r13 < 4) {
    const bool p2 = (int)r12 < 2;
    const u32 r14 = tid & 1u;
    u32 it = 0u;
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll
    for (int e = 0; e < 16; ++e) {
      sum[e] = 0.0f;
    }
    #pragma unroll 1
    for (int k = (int)r10; k < (int)r11; k += 64) {
      const u32 r15 = slot << 3;
      mbarrier_wait(smem_base + r15 + 36864, phase);
      const u32 r16 = slot << 13;
      const u32 r17 = slot << 12;
      // dot
      const u32 r18 = ((smem_base + r17 + 24576u) & 262143u) >> 4;
      const u32 r19 = ((smem_base + r16) & 262143u) >> 4;
      wgmma_fence();
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r19 + 65536u, 0x40000040u), pack_i64(r18 + 0x1000000u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r19 + 65538u, 0x40000040u), pack_i64(r18 + 0x1000040u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r19 + 65540u, 0x40000040u), pack_i64(r18 + 0x1000080u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r19 + 65542u, 0x40000040u), pack_i64(r18 + 0x10000c0u, 0x80000020u));
      wgmma_commit_group_sync_aligned();
      const bool p3 = (int)it > 0;
      wgmma_wait_1();
      const u32 r20 = slot + 2u;
      const u32 r21 = slot - 1u;
      __syncwarp();
      if (p3 && p2) {
        mbarrier_arrive_at(smem_base + (((int)r20 >= 3 ? r21 : r20) << 3) + 36888u, r14);
      }
      it = it + 1u;
      const bool p4 = slot == 2u;
      phase = phase ^ (p4 ? 1u : 0u);
      const u32 r22 = slot + 1u;
      const u32 r23 = slot - 2u;
      slot = (int)r22 >= 3 ? r23 : r22;
    }
    wgmma_wait_0(sum);
    // store part
    bar_sync(1u, 128);
    const u32 r24 = smem_base + (r13 << 11);
    const bool p5 = elect();
    const bool p6 = (tid & 2u) != 0u;
    const float f1 = p6 ? sum[8] : sum[0];
    const float f2 = p6 ? sum[9] : sum[1];
    const float f3 = p6 ? sum[10] : sum[2];
    const float f4 = p6 ? sum[11] : sum[3];
    const float f5 = p6 ? sum[12] : sum[4];
    const float f6 = p6 ? sum[13] : sum[5];
    const float f7 = p6 ? sum[14] : sum[6];
    const float f8 = p6 ? sum[15] : sum[7];
    const float f9 = p6 ? sum[0] : sum[8];
    const float f10 = p6 ? sum[1] : sum[9];
    const float f11 = p6 ? sum[2] : sum[10];
    const float f12 = p6 ? sum[3] : sum[11];
    const float f13 = p6 ? sum[4] : sum[12];
    const float f14 = p6 ? sum[5] : sum[13];
    const float f15 = p6 ? sum[6] : sum[14];
    const float f16 = p6 ? sum[7] : sum[15];
    const u32 r25 = ((r14 << 3) ^ (((tid >> 1) & 1u) * 80u)) ^ (((tid >> 2) & 7u) * 144u);
    const u32 r26 = r24 + r25;
    st_shared_v2_f32(r26, f1, f2);
    st_shared_v2_f32(r26 + 1024, f3, f4);
    const u32 r27 = r24 + (r25 ^ 32u);
    st_shared_v2_f32(r27, f5, f6);
    st_shared_v2_f32(r27 + 1024, f7, f8);
    const u32 r28 = r24 + (r25 ^ 64u);
    st_shared_v2_f32(r28, f9, f10);
    st_shared_v2_f32(r28 + 1024, f11, f12);
    const u32 r29 = r24 + (r25 ^ 96u);
    st_shared_v2_f32(r29, f13, f14);
    st_shared_v2_f32(r29 + 1024, f15, f16);
    fence_proxy_async_shared_cta();
    __syncwarp();
    const u32 r30 = row + (r13 << 4);
    if (p5) {
      tensor_store_3d(r24, part_map_at, col, r30, s);
      cp_async_bulk_commit();
    }
    cp_async_bulk_wait_read<0>();
  } else {
    if (r13 == 4u) {
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int k_1 = (int)r10; k_1 < (int)r11; k_1 += 64) {
        const u32 r31 = slot_1 << 3;
        const u32 r32 = smem_base + r31;
        const u32 r33 = r32 + 36864u;
        const bool p7 = elect();
        if (p7) {
          const u32 r34 = phase_1 ^ 1u;
          mbarrier_wait(r32 + 36888, r34);
          mbarrier_expect(r32 + 36864, 12288);
          const u32 r35 = slot_1 << 13;
          tensor_load_2d(smem_base + r35, a_map_at, r33, (u32)k_1, row);
          const u32 r36 = slot_1 << 12;
          tensor_load_2d_multicast(smem_base + r36 + (cluster_ctarank << 11) + 24576, b_map_at, r33, col, k_1 + (cluster_ctarank << 5), 3);
        }
        const bool p8 = slot_1 == 2u;
        phase_1 = phase_1 ^ (p8 ? 1u : 0u);
        const u32 r37 = slot_1 + 1u;
        const u32 r38 = slot_1 - 2u;
        slot_1 = (int)r37 >= 3 ? r38 : r37;
      }
    }
  }
  barrier_cluster_arrive_release();
  barrier_cluster_wait_acquire();
}

extern "C" __global__ void __launch_bounds__(128)
gemm_sum(int M, int N, float *__restrict__ part, u64 part_stride0, u64 part_stride1, u16 *__restrict__ c, u64 c_stride0) {
  const u32 block_x = blockIdx.x;
  const u64 part_at = (u64)part;
  const u32 tid = threadIdx.x;
  const u64 c_at = (u64)c;
  float sum[4];
  griddepcontrol_wait();
  const u32 r1 = (N + 31u) >> 5;
  const u32 j = block_x % r1;
  const u32 i = block_x / r1;
  const u32 row = i << 4;
  const u32 col = j << 5;
  const u32 r2 = (tid & 7u) << 2;
  const u32 r3 = tid >> 3;
  const u64 n1 = part_stride0 << 2;
  const u64 n2 = (i64)(int)row;
  const u64 at1 = part_at + n2 * (part_stride1 << 2) + (i64)(int)col * 4 + (i64)(int)r3 * (int)((u32)part_stride1 << 2);
  u64 at = at1 + (i64)(int)r2 * 4;
  // load part
  const bool p1 = (int)(M - (row + r3)) > 0 && (int)(N - (col + r2)) > 0;
  #pragma unroll
  for (int e = 0; e < 4; ++e) {
    sum[e] = 0.0f;
  }
  for (int i_1 = 0; i_1 < 2; ++i_1) {
    float f1, f2, f3, f4;
    ld_global_v4_f32_if(f1, f2, f3, f4, at, p1);
    sum[0] = sum[0] + f1;
    sum[1] = sum[1] + f2;
    sum[2] = sum[2] + f3;
    sum[3] = sum[3] + f4;
    at = at + n1;
  }
  const u32 h1 = cvt_bf16x2(sum[1], sum[0]);
  const u32 h2 = cvt_bf16x2(sum[3], sum[2]);
  // store c
  const u64 at2 = c_at + n2 * (c_stride0 << 1) + (i64)(int)col * 2 + (i64)(int)r3 * (int)((u32)c_stride0 << 1);
  if (p1) {
    st_global_v2(at2 + (i64)(int)r2 * 2, h1, h2);
  }
}
