// For sm_90a.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct __align__(64) TensorMap { u8 bytes[128]; };

extern __shared__ __align__(1024) u8 smem[];

static __device__ __forceinline__ void mbarrier_init(u32 at, u32 n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :  : "r"(at), "r"(n) : "memory");
}

static __device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" :  :  : "memory");
}

static __device__ __forceinline__ void bar_arrive(u32 id, u32 threads) {
  asm volatile("bar.arrive %0, %1;" :  : "r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void bar_sync(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" :  : "r"(id), "r"(threads) : "memory");
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

static __device__ __forceinline__ void mbarrier_arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :  : "r"(at) : "memory");
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

// 65584 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(384)
gemm(int M, int N, int K, const __grid_constant__ TensorMap c_map, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u32 blocks_x = gridDim.x;
  const u64 c_map_at = (u64)&c_map;
  const u64 a_map_at = (u64)&a_map;
  const u64 b_map_at = (u64)&b_map;
  float sum[32];
  const u32 r1 = (M + 63u) >> 6;
  const u32 r2 = (N + 63u) >> 6;
  const bool p1 = (tid & 31u) == 0u;
  const u32 r3 = tid >> 5;
  const bool p2 = r3 == 0u && p1;
  if (p2) {
    mbarrier_init(smem_base + 65536, 1);
    mbarrier_init(smem_base + 65560, 4);
    mbarrier_init(smem_base + 65544, 1);
    mbarrier_init(smem_base + 65568, 4);
    mbarrier_init(smem_base + 65552, 1);
    mbarrier_init(smem_base + 65576, 4);
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  if ((int)r3 < 8) {
    const u32 r4 = tid & 127u;
    const u32 r5 = r1 * r2;
    const u32 r6 = tid >> 7;
    const u32 r7 = r6 + 2u;
    const u32 r8 = 3u - r6;
    const u32 r9 = (u32)max((int)(K + 63u), 0) >> 6;
    const u32 r10 = (r9 / 3u) & 1u;
    const u32 r11 = r9 % 3u;
    const bool p3 = r6 == 1u;
    if (p3) {
      bar_arrive(r8, 256);
    }
    u32 phase = p3 ? r10 : 0u;
    u32 slot = p3 ? r11 : 0u;
    const u32 r12 = blocks_x << 1;
    const u32 r13 = r6 * blocks_x;
    #pragma unroll 1
    for (int tile = (int)block_x; tile < (int)r5; tile += (int)r12) {
      const u32 r14 = tile + r13;
      u32 r51;
      u32 r52;
      if ((int)r14 < (int)r5) {
        const u32 r15 = min((int)r1, 8);
        const u32 r16 = r15 * r2;
        const u32 r17 = r14 / r16;
        const u32 r18 = r17 * r15;
        const u32 r19 = min((int)(r1 - r18), (int)r15);
        const u32 r20 = r14 % r16;
        const u32 r21 = r20 / r19;
        const u32 r22 = r21 | 7u;
        const bool p4 = r19 == 8u && (int)r22 < (int)r2;
        const u32 r23 = (r20 >> 1) & 1u;
        const u32 r24 = (r20 & 1u) ^ r23;
        const u32 r25 = (r20 >> 3) & 1u;
        const u32 r26 = ((r20 >> 2) & 1u) ^ r25;
        const u32 r27 = (0u - r25) & 1u;
        const bool p5 = r26 == 0u;
        const u32 r28 = (p5 ? r23 ^ r27 : r24) + (r26 << 1);
        const u32 r29 = (p5 ? r24 ^ r27 : r23) + (r25 << 1);
        const u32 r30 = (r20 >> 5) & 1u;
        const u32 r31 = ((r20 >> 4) & 1u) ^ r30;
        const u32 r32 = (0u - r30) & 3u;
        const bool p6 = r31 == 0u;
        const u32 i = p4 ? r18 + ((p6 ? r29 ^ r32 : r28) + (r31 << 2)) : r18 + r20 % r19;
        const u32 r33 = p4 ? r22 + ((p6 ? r28 ^ r32 : r29) + (r30 << 2)) - 7u : r21;
        const u32 j = (r17 & 1u) != 0u ? r2 - 1u - r33 : r33;
        const u32 row = i << 6;
        const u32 col = j << 6;
        bar_sync(r7, 256);
        u32 phase_1 = phase;
        u32 slot_1 = slot;
        u32 it = 0u;
        #pragma unroll
        for (int e = 0; e < 32; ++e) {
          sum[e] = 0.0f;
        }
        #pragma unroll 1
        for (int k = 0; k < K; k += 64) {
          const u32 r34 = slot_1 << 3;
          mbarrier_wait(smem_base + r34 + 65536, phase_1);
          const u32 r35 = slot_1 << 13;
          const u32 r36 = smem_base + r35;
          // dot
          const u32 r37 = (r36 + 24576u) >> 4;
          const u32 r38 = r36 >> 4;
          wgmma_fence();
          wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r38 + 65536u, 0x40000040u), pack_i64(r37 + 0x2000000u, 0x40000040u));
          wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r38 + 65538u, 0x40000040u), pack_i64(r37 + 0x2000080u, 0x40000040u));
          wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r38 + 65540u, 0x40000040u), pack_i64(r37 + 0x2000100u, 0x40000040u));
          wgmma_m64n64k16_f32_bf16_bf16_tb(sum, pack_i64(r38 + 65542u, 0x40000040u), pack_i64(r37 + 0x2000180u, 0x40000040u));
          wgmma_commit_group_sync_aligned();
          const bool p7 = (int)it > 0;
          wgmma_wait_1();
          const u32 r39 = slot_1 + 2u;
          const u32 r40 = slot_1 - 1u;
          __syncwarp();
          if (p7 && p1) {
            mbarrier_arrive(smem_base + (((int)r39 >= 3 ? r40 : r39) << 3) + 65560);
          }
          it = it + 1u;
          const bool p8 = slot_1 == 2u;
          phase_1 = phase_1 ^ (p8 ? 1u : 0u);
          const u32 r41 = slot_1 + 1u;
          const u32 r42 = slot_1 - 2u;
          slot_1 = (int)r41 >= 3 ? r42 : r41;
        }
        bar_arrive(r8, 256);
        wgmma_wait_0(sum);
        const bool p9 = (int)it > 0;
        const u32 r43 = slot_1 + 2u;
        const u32 r44 = slot_1 - 1u;
        __syncwarp();
        if (p9 && p1) {
          mbarrier_arrive(smem_base + (((int)r43 >= 3 ? r44 : r43) << 3) + 65560);
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
        const u32 r45 = smem_base + (r3 << 11);
        const bool p10 = elect();
        cp_async_bulk_wait_read<0>();
        __syncwarp();
        const u32 r46 = ((r4 >> 3) & 1u) << 10;
        const u32 r47 = ((tid & 7u) * 144u) ^ (((r4 >> 4) & 1u) << 4);
        stmatrix_x4(r45 + (r47 + r46) + 49152, h1, h2, h3, h4);
        stmatrix_x4(r45 + ((r47 ^ 32u) + r46) + 49152, h5, h6, h7, h8);
        stmatrix_x4(r45 + ((r47 ^ 64u) + r46) + 49152, h9, h10, h11, h12);
        stmatrix_x4(r45 + ((r47 ^ 96u) + r46) + 49152, h13, h14, h15, h16);
        fence_proxy_async_shared_cta();
        __syncwarp();
        const u32 r48 = row + ((r4 >> 5) << 4);
        if (p10) {
          tensor_store_2d(r45 + 49152, c_map_at, col, r48);
          cp_async_bulk_commit();
        }
        const u32 r49 = slot_1 + r11;
        const bool p11 = (int)r49 >= 3;
        const u32 r50 = phase_1 ^ r10;
        r51 = r50 ^ (p11 ? 1u : 0u);
        r52 = p11 ? r49 - 3u : r49;
      } else {
        bar_sync(r7, 256);
        bar_arrive(r8, 256);
        r51 = phase;
        r52 = slot;
      }
      phase = r51;
      slot = r52;
    }
    if (r6 == 0u) {
      bar_sync(r7, 256);
    }
    cp_async_bulk_wait_read<0>();
  } else {
    if (r3 == 8u) {
      const u32 r53 = r1 * r2;
      const u32 r54 = min((int)r1, 8);
      const u32 r55 = r54 * r2;
      const u32 r56 = r2 - 1u;
      u32 phase_2 = 0u;
      u32 slot_2 = 0u;
      #pragma unroll 1
      for (int tile_1 = (int)block_x; tile_1 < (int)r53; tile_1 += (int)blocks_x) {
        const u32 r57 = (u32)tile_1 / r55;
        const u32 r58 = r57 * r54;
        const u32 r59 = min((int)(r1 - r58), (int)r54);
        const u32 r60 = (u32)tile_1 % r55;
        const u32 r61 = r60 / r59;
        const u32 r62 = r61 | 7u;
        const bool p12 = r59 == 8u && (int)r62 < (int)r2;
        const u32 r63 = (r60 >> 1) & 1u;
        const u32 r64 = (r60 & 1u) ^ r63;
        const u32 r65 = (r60 >> 3) & 1u;
        const u32 r66 = ((r60 >> 2) & 1u) ^ r65;
        const u32 r67 = (0u - r65) & 1u;
        const bool p13 = r66 == 0u;
        const u32 r68 = (p13 ? r63 ^ r67 : r64) + (r66 << 1);
        const u32 r69 = (p13 ? r64 ^ r67 : r63) + (r65 << 1);
        const u32 r70 = (r60 >> 5) & 1u;
        const u32 r71 = ((r60 >> 4) & 1u) ^ r70;
        const u32 r72 = (0u - r70) & 3u;
        const bool p14 = r71 == 0u;
        const u32 i_1 = p12 ? r58 + ((p14 ? r69 ^ r72 : r68) + (r71 << 2)) : r58 + r60 % r59;
        const u32 r73 = p12 ? r62 + ((p14 ? r68 ^ r72 : r69) + (r70 << 2)) - 7u : r61;
        const u32 j_1 = (r57 & 1u) != 0u ? r56 - r73 : r73;
        const u32 row_1 = i_1 << 6;
        const u32 col_1 = j_1 << 6;
        #pragma unroll 1
        for (int k_1 = 0; k_1 < K; k_1 += 64) {
          const u32 r74 = slot_2 << 3;
          const u32 r75 = smem_base + r74;
          const u32 r76 = r75 + 65536u;
          const bool p15 = elect();
          if (p15) {
            const u32 r77 = phase_2 ^ 1u;
            mbarrier_wait(r75 + 65560, r77);
            mbarrier_expect(r75 + 65536, 16384);
            const u32 r78 = slot_2 << 13;
            const u32 r79 = smem_base + r78;
            tensor_load_2d(r79, a_map_at, r76, (u32)k_1, row_1);
            tensor_load_2d(r79 + 24576, b_map_at, r76, col_1, (u32)k_1);
          }
          const bool p16 = slot_2 == 2u;
          phase_2 = phase_2 ^ (p16 ? 1u : 0u);
          const u32 r80 = slot_2 + 1u;
          const u32 r81 = slot_2 - 2u;
          slot_2 = (int)r80 >= 3 ? r81 : r80;
        }
      }
    }
  }
}
