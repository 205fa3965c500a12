// For sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ void cp_async_cg_16_part_if(u32 to, u64 from, u32 bytes, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %2; }" :  : "r"(to), "l"(from), "r"(bytes), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" :  :  : "memory");
}

template <int N> static __device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4_trans(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ void mma_m16n8k16_bf16_f32(float &d0, float &d1, float &d2, float &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void ld_global_nc_v2_f32_if(float &r0, float &r1, u64 at, bool p) {
  asm("{ .reg .pred p; setp.ne.b32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.nc.v2.b32 {%0, %1}, [%2]; }" : "=f"(r0), "=f"(r1) : "l"(at), "r"((u32)p));
}

static __device__ __forceinline__ float ex2(float a) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ float div(float a, float b) {
  float d;
  asm("div.approx.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ void st_shared(u32 at, u32 r0) {
  asm volatile("st.shared.b32 [%0], %1;" :  : "r"(at), "r"(r0) : "memory");
}

static __device__ __forceinline__ void ld_shared_v4(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ void st_global_v4(u64 at, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" :  : "l"(at), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

// 18432 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128)
gemm(int M, int N, int K, const u16 *__restrict__ a, u64 a_stride0, const u16 *__restrict__ b, u64 b_stride0, const float *__restrict__ bias, u16 *__restrict__ c, u64 c_stride0) {
  __shared__ __align__(512) u8 smem[18432];
  const u32 block_x = blockIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 a_at = (u64)a;
  const u32 tid = threadIdx.x;
  const u64 b_at = (u64)b;
  const u64 bias_at = (u64)bias;
  const u64 c_at = (u64)c;
  float sum[16];
  const u32 r1 = (M + 63u) >> 6;
  const u32 r2 = min((int)r1, 4);
  const u32 r3 = r2 * ((N + 31u) >> 5);
  const u32 r4 = block_x / r3 * r2;
  const u32 r5 = min((int)(r1 - r4), (int)r2);
  const u32 r6 = block_x % r3;
  const u32 i = r4 + r6 % r5;
  const u32 j = r6 / r5;
  const u32 row = i << 6;
  const u32 col = j << 5;
  const bool p1 = K > 0;
  // copy a
  const u64 n1 = (i64)(int)row;
  const u32 r7 = tid >> 2;
  const u32 r8 = (u32)a_stride0 << 1;
  const u32 r9 = tid & 3u;
  const u32 r10 = r9 << 3;
  u64 at = a_at + n1 * (a_stride0 << 1) + (i64)(int)r7 * (int)r8 + (i64)(int)r10 * 2;
  const u32 r11 = M - (row + r7);
  const u32 r12 = tid >> 5;
  const u32 r13 = tid >> 3;
  const u32 r14 = (r13 & 3u) * 144u;
  const u32 r15 = (((tid & 7u) << 4) ^ r14) + (r12 << 9);
  const u32 r16 = smem_base + r15;
  const bool p2 = (int)r11 > 0;
  const bool p3 = (int)(K - r10) > 0;
  cp_async_cg_16_part_if(r16, at, p2 && p3 ? 16u : 0u, p1);
  const bool p4 = (int)r11 > 32;
  u64 at_1 = at + (i64)32 * (int)r8;
  cp_async_cg_16_part_if(r16 + 2048, at_1, p4 && p3 ? 16u : 0u, p1);
  // copy b
  const u32 r17 = (u32)b_stride0 << 1;
  const bool p5 = (int)(N - (col + r10)) > 0;
  cp_async_cg_16_part_if(r16 + 12288, b_at + (i64)(int)col * 2 + (i64)(int)r7 * (int)r17 + (i64)(int)r10 * 2, (int)(K - r7) > 0 && p5 ? 16u : 0u, p1);
  cp_async_commit();
  const bool p6 = K > 32;
  // copy a
  const bool p7 = (int)(K - (r10 + 32u)) > 0;
  cp_async_cg_16_part_if(r16 + 4096, at + 64, p2 && p7 ? 16u : 0u, p6);
  cp_async_cg_16_part_if(r16 + 6144, at_1 + 64, p4 && p7 ? 16u : 0u, p6);
  // copy b
  const u64 n2 = b_stride0 << 6;
  cp_async_cg_16_part_if(r16 + 14336, b_at + n2 + (i64)(int)col * 2 + (i64)(int)r7 * (int)r17 + (i64)(int)r10 * 2, (int)(K - (r7 + 32u)) > 0 && p5 ? 16u : 0u, p6);
  cp_async_commit();
  u64 at_2 = b_at + (b_stride0 << 7) + (i64)(int)col * 2 + (i64)(int)r7 * (int)r17 + (i64)(int)r10 * 2;
  // dot
  const u32 r18 = (r13 & 1u) << 9;
  const u32 r19 = (r12 & 1u) << 11;
  const u32 r20 = r18 + r19;
  const u32 r21 = (((tid & 1u) << 6) ^ (((tid >> 1) & 3u) * 144u)) ^ (((tid >> 4) & 1u) << 4);
  const u32 r22 = tid >> 6;
  const u32 r23 = r22 << 5;
  const u32 r24 = r21 + r20;
  const u32 r25 = (r21 ^ r23) + r18;
  const u32 r26 = (r21 ^ 32u) + r20;
  u32 slot = 0u;
  #pragma unroll
  for (int e = 0; e < 16; ++e) {
    sum[e] = 0.0f;
  }
  for (int k = 0; k < K; k += 32) {
    cp_async_wait<1>();
    __syncthreads();
    const bool p8 = (int)(k + 64u) < K;
    // copy a
    const u32 r27 = slot + 2u;
    const u32 r28 = slot - 1u;
    const u32 r29 = (int)r27 >= 3 ? r28 : r27;
    const u32 r30 = smem_base + (r29 << 12) + r15;
    const bool p9 = (int)(K - (k + r10 + 64u)) > 0;
    cp_async_cg_16_part_if(r30, at + 128, p2 && p9 ? 16u : 0u, p8);
    cp_async_cg_16_part_if(r30 + 2048, at_1 + 128, p4 && p9 ? 16u : 0u, p8);
    // copy b
    cp_async_cg_16_part_if(smem_base + (r29 << 11) + r15 + 12288, at_2, (int)(K - (k + r7 + 64u)) > 0 && p5 ? 16u : 0u, p8);
    cp_async_commit();
    const u32 r31 = slot << 12;
    const u32 r32 = smem_base + r31;
    const u32 r33 = slot << 11;
    // dot
    const u32 r34 = r32 + r24;
    u32 h1, h2, h3, h4;
    ldmatrix_x4(h1, h2, h3, h4, r34);
    u32 h5, h6, h7, h8;
    ldmatrix_x4(h5, h6, h7, h8, r34 + 1024);
    const u32 r35 = smem_base + r33 + r25;
    u32 h9, h10, h11, h12;
    ldmatrix_x4_trans(h9, h10, h11, h12, r35 + 12288);
    const u32 r36 = r32 + r26;
    u32 h13, h14, h15, h16;
    ldmatrix_x4(h13, h14, h15, h16, r36);
    u32 h17, h18, h19, h20;
    ldmatrix_x4(h17, h18, h19, h20, r36 + 1024);
    u32 h21, h22, h23, h24;
    ldmatrix_x4_trans(h21, h22, h23, h24, r35 + 13312);
    mma_m16n8k16_bf16_f32(sum[0], sum[1], sum[2], sum[3], h1, h2, h3, h4, h9, h10);
    mma_m16n8k16_bf16_f32(sum[4], sum[5], sum[6], sum[7], h1, h2, h3, h4, h11, h12);
    mma_m16n8k16_bf16_f32(sum[8], sum[9], sum[10], sum[11], h5, h6, h7, h8, h9, h10);
    mma_m16n8k16_bf16_f32(sum[12], sum[13], sum[14], sum[15], h5, h6, h7, h8, h11, h12);
    mma_m16n8k16_bf16_f32(sum[0], sum[1], sum[2], sum[3], h13, h14, h15, h16, h21, h22);
    mma_m16n8k16_bf16_f32(sum[4], sum[5], sum[6], sum[7], h13, h14, h15, h16, h23, h24);
    mma_m16n8k16_bf16_f32(sum[8], sum[9], sum[10], sum[11], h17, h18, h19, h20, h21, h22);
    mma_m16n8k16_bf16_f32(sum[12], sum[13], sum[14], sum[15], h17, h18, h19, h20, h23, h24);
    const u32 r37 = slot + 1u;
    const u32 r38 = slot - 2u;
    slot = (int)r37 >= 3 ? r38 : r37;
    at = at + 64ull;
    at_1 = at_1 + 64ull;
    at_2 = at_2 + n2;
  }
  // load bias
  const u32 r39 = (r9 << 1) ^ (r22 << 4);
  const u64 at1 = bias_at + (i64)(int)col * 4 + (i64)(int)r39 * 4;
  const u32 r40 = N - (col + r39);
  float f1, f2;
  ld_global_nc_v2_f32_if(f1, f2, at1, (int)r40 > 0);
  float f3, f4;
  ld_global_nc_v2_f32_if(f3, f4, at1 + 32, (int)r40 > 8);
  const float f5 = sum[0] + f1;
  const float f6 = sum[1] + f2;
  const float f7 = sum[2] + f1;
  const float f8 = sum[3] + f2;
  const float f9 = sum[4] + f3;
  const float f10 = sum[5] + f4;
  const float f11 = sum[6] + f3;
  const float f12 = sum[7] + f4;
  const float f13 = sum[8] + f1;
  const float f14 = sum[9] + f2;
  const float f15 = sum[10] + f1;
  const float f16 = sum[11] + f2;
  const float f17 = sum[12] + f3;
  const float f18 = sum[13] + f4;
  const float f19 = sum[14] + f3;
  const float f20 = sum[15] + f4;
  const u32 h25 = cvt_bf16x2(div(f6, ex2(f6 * fmaf(f6 * f6, -0.10294324f, -2.3022082f)) + 1.0f), div(f5, ex2(f5 * fmaf(f5 * f5, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h26 = cvt_bf16x2(div(f8, ex2(f8 * fmaf(f8 * f8, -0.10294324f, -2.3022082f)) + 1.0f), div(f7, ex2(f7 * fmaf(f7 * f7, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h27 = cvt_bf16x2(div(f10, ex2(f10 * fmaf(f10 * f10, -0.10294324f, -2.3022082f)) + 1.0f), div(f9, ex2(f9 * fmaf(f9 * f9, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h28 = cvt_bf16x2(div(f12, ex2(f12 * fmaf(f12 * f12, -0.10294324f, -2.3022082f)) + 1.0f), div(f11, ex2(f11 * fmaf(f11 * f11, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h29 = cvt_bf16x2(div(f14, ex2(f14 * fmaf(f14 * f14, -0.10294324f, -2.3022082f)) + 1.0f), div(f13, ex2(f13 * fmaf(f13 * f13, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h30 = cvt_bf16x2(div(f16, ex2(f16 * fmaf(f16 * f16, -0.10294324f, -2.3022082f)) + 1.0f), div(f15, ex2(f15 * fmaf(f15 * f15, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h31 = cvt_bf16x2(div(f18, ex2(f18 * fmaf(f18 * f18, -0.10294324f, -2.3022082f)) + 1.0f), div(f17, ex2(f17 * fmaf(f17 * f17, -0.10294324f, -2.3022082f)) + 1.0f));
  const u32 h32 = cvt_bf16x2(div(f20, ex2(f20 * fmaf(f20 * f20, -0.10294324f, -2.3022082f)) + 1.0f), div(f19, ex2(f19 * fmaf(f19 * f19, -0.10294324f, -2.3022082f)) + 1.0f));
  // convert
  __syncthreads();
  const u32 r41 = (((r9 << 2) ^ ((r7 & 1u) << 6)) ^ r14) ^ r23;
  const u32 r42 = smem_base + (r41 + r19);
  st_shared(r42, h25);
  st_shared(r42 + 512, h26);
  const u32 r43 = smem_base + ((r41 ^ 16u) + r19);
  st_shared(r43, h27);
  st_shared(r43 + 512, h28);
  st_shared(r42 + 1024, h29);
  st_shared(r42 + 1536, h30);
  st_shared(r43 + 1024, h31);
  st_shared(r43 + 1536, h32);
  __syncthreads();
  u32 h33, h34, h35, h36;
  ld_shared_v4(h33, h34, h35, h36, r16);
  u32 h37, h38, h39, h40;
  ld_shared_v4(h37, h38, h39, h40, r16 + 2048);
  // store c
  const u32 r44 = (u32)c_stride0 << 1;
  const u64 at2 = c_at + n1 * (c_stride0 << 1) + (i64)(int)col * 2 + (i64)(int)r7 * (int)r44 + (i64)(int)r10 * 2;
  if (p2 && p5) {
    st_global_v4(at2, h33, h34, h35, h36);
  }
  if (p4 && p5) {
    st_global_v4(at2 + (i64)32 * (int)r44, h37, h38, h39, h40);
  }
}
