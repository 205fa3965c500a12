// For sm_90a.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

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

static __device__ __forceinline__ void wgmma_m64n32k16_f32_bf16_bf16_tb(float (&d0)[16], u64 a0, u64 b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 1;" : "+f"(d0[0]), "+f"(d0[1]), "+f"(d0[2]), "+f"(d0[3]), "+f"(d0[4]), "+f"(d0[5]), "+f"(d0[6]), "+f"(d0[7]), "+f"(d0[8]), "+f"(d0[9]), "+f"(d0[10]), "+f"(d0[11]), "+f"(d0[12]), "+f"(d0[13]), "+f"(d0[14]), "+f"(d0[15]) : "l"(a0), "l"(b) : "memory");
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

static __device__ __forceinline__ void st_shared(u32 at, u32 r0) {
  asm volatile("st.shared.b32 [%0], %1;" :  : "r"(at), "r"(r0) : "memory");
}

static __device__ __forceinline__ void ld_shared_v2(u32 &r0, u32 &r1, u32 at) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at) : "memory");
}

static __device__ __forceinline__ void st_global_v2(u64 at, u32 r0, u32 r1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" :  : "l"(at), "r"(r0), "r"(r1) : "memory");
}

static __device__ __forceinline__ void cp_async_cg_16_part(u32 to, u64 from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :  : "r"(to), "l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void cp_async_ca_8_part(u32 to, u64 from, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :  : "r"(to), "l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbarrier_copied(u32 at) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :  : "r"(at) : "memory");
}

// 36912 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
gemm(int M, int N, int K, u16 *__restrict__ c, u64 c_stride0, const u16 *__restrict__ a, u64 a_stride0, const u16 *__restrict__ b, u64 b_stride0) {
  __shared__ __align__(1024) u8 smem[36912];
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 c_at = (u64)c;
  const u64 a_at = (u64)a;
  const u64 b_at = (u64)b;
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
    mbarrier_init(smem_base + 36864, 128);
    mbarrier_init(smem_base + 36888, 4);
    mbarrier_init(smem_base + 36872, 128);
    mbarrier_init(smem_base + 36896, 4);
    mbarrier_init(smem_base + 36880, 128);
    mbarrier_init(smem_base + 36904, 4);
  }
  fence_proxy_async_shared_cta();
  __syncthreads();
  if ((int)r7 < 4) {
    u32 it = 0u;
    u32 phase = 0u;
    u32 slot = 0u;
    #pragma unroll
    for (int e = 0; e < 16; ++e) {
      sum[e] = 0.0f;
    }
    #pragma unroll 1
    for (int k = 0; k < K; k += 64) {
      const u32 r8 = slot << 3;
      mbarrier_wait(smem_base + r8 + 36864, phase);
      fence_proxy_async_shared_cta();
      const u32 r9 = slot << 13;
      const u32 r10 = slot << 12;
      // dot
      const u32 r11 = (smem_base + r10 + 24576u) >> 4;
      const u32 r12 = (smem_base + r9) >> 4;
      wgmma_fence();
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r12 + 65536u, 0x40000040u), pack_i64(r11 + 0x1000000u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r12 + 65538u, 0x40000040u), pack_i64(r11 + 0x1000040u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r12 + 65540u, 0x40000040u), pack_i64(r11 + 0x1000080u, 0x80000020u));
      wgmma_m64n32k16_f32_bf16_bf16_tb(sum, pack_i64(r12 + 65542u, 0x40000040u), pack_i64(r11 + 0x10000c0u, 0x80000020u));
      wgmma_commit_group_sync_aligned();
      const bool p3 = (int)it > 0;
      wgmma_wait_1();
      const u32 r13 = slot + 2u;
      const u32 r14 = slot - 1u;
      __syncwarp();
      if (p3 && p1) {
        mbarrier_arrive(smem_base + (((int)r13 >= 3 ? r14 : r13) << 3) + 36888);
      }
      it = it + 1u;
      const bool p4 = slot == 2u;
      phase = phase ^ (p4 ? 1u : 0u);
      const u32 r15 = slot + 1u;
      const u32 r16 = slot - 2u;
      slot = (int)r15 >= 3 ? r16 : r15;
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
    // convert
    bar_sync(1u, 128);
    const u32 r17 = r7 << 10;
    const u32 r18 = tid >> 3;
    const u32 r19 = (((tid & 3u) << 2) ^ (((tid >> 2) & 1u) << 6)) ^ ((r18 & 3u) * 144u);
    const u32 r20 = smem_base + (r19 + r17);
    st_shared(r20, h1);
    st_shared(r20 + 512, h2);
    const u32 r21 = smem_base + ((r19 ^ 16u) + r17);
    st_shared(r21, h3);
    st_shared(r21 + 512, h4);
    const u32 r22 = smem_base + ((r19 ^ 32u) + r17);
    st_shared(r22, h5);
    st_shared(r22 + 512, h6);
    const u32 r23 = smem_base + ((r19 ^ 48u) + r17);
    st_shared(r23, h7);
    st_shared(r23 + 512, h8);
    bar_sync(1u, 128);
    const u32 r24 = (((tid & 15u) << 3) ^ (((tid >> 4) & 3u) * 144u)) + ((tid >> 6) << 9);
    const u32 r25 = smem_base + r24;
    u32 h9, h10;
    ld_shared_v2(h9, h10, r25);
    u32 h11, h12;
    ld_shared_v2(h11, h12, r25 + 1024);
    u32 h13, h14;
    ld_shared_v2(h13, h14, r25 + 2048);
    u32 h15, h16;
    ld_shared_v2(h15, h16, r25 + 3072);
    // store c
    const u32 r26 = (u32)c_stride0 << 1;
    const u32 r27 = (tid & 7u) << 2;
    const u64 at1 = c_at + (i64)(int)row * (c_stride0 << 1) + (i64)(int)col * 2 + (i64)(int)r18 * (int)r26 + (i64)(int)r27 * 2;
    const u32 r28 = M - (row + r18);
    const bool p5 = (int)(N - (col + r27)) > 0;
    if ((int)r28 > 0 && p5) {
      st_global_v2(at1, h9, h10);
    }
    if ((int)r28 > 16 && p5) {
      st_global_v2(at1 + (i64)16 * (int)r26, h11, h12);
    }
    if ((int)r28 > 32 && p5) {
      st_global_v2(at1 + (i64)32 * (int)r26, h13, h14);
    }
    if ((int)r28 > 48 && p5) {
      st_global_v2(at1 + (i64)48 * (int)r26, h15, h16);
    }
  } else {
    if ((int)r7 < 8) {
      const u32 r29 = tid & 127u;
      const u32 r30 = tid & 7u;
      const u32 r31 = r30 << 3;
      const u32 r32 = r29 >> 3;
      const u32 r33 = (u32)a_stride0;
      u64 at = a_at + (i64)(int)row * (a_stride0 << 1) + (i64)(int)r32 * (int)(r33 << 1) + (i64)(int)r31 * 2;
      const u32 r34 = r30 << 2;
      const u32 r35 = (u32)b_stride0;
      const u64 n1 = b_stride0 << 7;
      u64 at_1 = b_at + (i64)(int)col * 2 + (i64)(int)r32 * (int)(r35 << 1) + (i64)(int)r34 * 2;
      const u64 n2 = (i64)(int)r33 * 32;
      const u64 n3 = (i64)(int)r35 * 32;
      // copy a
      const u32 r36 = M - (row + r32);
      const u32 r37 = r29 >> 6;
      const u32 r38 = ((r30 << 4) ^ ((r32 & 7u) * 144u)) + (r37 << 10);
      const bool p6 = (int)r36 > 0;
      const bool p7 = (int)r36 > 16;
      const bool p8 = (int)r36 > 32;
      const bool p9 = (int)r36 > 48;
      // copy b
      const u32 r39 = N - (col + r34);
      const u32 r40 = (((tid & 15u) << 3) ^ (((r29 >> 4) & 3u) * 144u)) + (r37 << 9);
      u32 phase_1 = 0u;
      u32 slot_1 = 0u;
      #pragma unroll 1
      for (int k_1 = 0; k_1 < K; k_1 += 64) {
        const u32 r41 = phase_1 ^ 1u;
        const u32 r42 = slot_1 << 3;
        const u32 r43 = smem_base + r42;
        mbarrier_wait(r43 + 36888, r41);
        // copy a
        const u32 r44 = slot_1 << 13;
        const u32 r45 = smem_base + r44 + r38;
        const bool p10 = (int)(K - (k_1 + r31)) > 0;
        cp_async_cg_16_part(r45, at, p6 && p10 ? 16u : 0u);
        const u64 at2 = at + n2;
        cp_async_cg_16_part(r45 + 2048, at2, p7 && p10 ? 16u : 0u);
        const u64 at3 = at2 + n2;
        cp_async_cg_16_part(r45 + 4096, at3, p8 && p10 ? 16u : 0u);
        cp_async_cg_16_part(r45 + 6144, at3 + n2, p9 && p10 ? 16u : 0u);
        // copy b
        const u32 r46 = slot_1 << 12;
        const u32 r47 = K - (k_1 + r32);
        const u32 r48 = smem_base + r46 + r40;
        const bool p11 = (int)r39 > 0;
        cp_async_ca_8_part(r48 + 24576, at_1, (int)r47 > 0 && p11 ? 8u : 0u);
        const u64 at4 = at_1 + n3;
        cp_async_ca_8_part(r48 + 25600, at4, (int)r47 > 16 && p11 ? 8u : 0u);
        const u64 at5 = at4 + n3;
        cp_async_ca_8_part(r48 + 26624, at5, (int)r47 > 32 && p11 ? 8u : 0u);
        cp_async_ca_8_part(r48 + 27648, at5 + n3, (int)r47 > 48 && p11 ? 8u : 0u);
        mbarrier_copied(r43 + 36864);
        const bool p12 = slot_1 == 2u;
        phase_1 = phase_1 ^ (p12 ? 1u : 0u);
        const u32 r49 = slot_1 + 1u;
        const u32 r50 = slot_1 - 2u;
        slot_1 = (int)r49 >= 3 ? r50 : r49;
        at = at + 128ull;
        at_1 = at_1 + n1;
      }
    }
  }
}
