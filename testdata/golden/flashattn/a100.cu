// For sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ void cp_async_cg_16_part(u32 to, u64 from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :  : "r"(to), "l"(from), "r"(bytes) : "memory");
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

static __device__ __forceinline__ void cp_async_cg_16_part_if(u32 to, u64 from, u32 bytes, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %2; }" :  : "r"(to), "l"(from), "r"(bytes), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ void mma_m16n8k16_bf16_f32(float &d0, float &d1, float &d2, float &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
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

static __device__ __forceinline__ void ldmatrix_x4_trans(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}

static __device__ __forceinline__ float rcp(float a) {
  float d;
  asm("rcp.rn.f32 %0, %1;" : "=f"(d) : "f"(a));
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

static __device__ __forceinline__ float lg2(float a) {
  float d;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ void st_global_f32(u64 at, float r0) {
  asm volatile("st.global.b32 [%0], %1;" :  : "l"(at), "f"(r0) : "memory");
}

// 8192 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(128)
attention(float scale, int B, int Sq, int H, int Sk, int KVH, const u16 *__restrict__ q, u64 q_stride0, u64 q_stride1, u64 q_stride2, const u16 *__restrict__ k, u64 k_stride0, u64 k_stride2, u64 k_stride1, const u16 *__restrict__ v, u64 v_stride0, u64 v_stride2, u64 v_stride1, u16 *__restrict__ o, u64 o_stride0, u64 o_stride1, u64 o_stride2, float *__restrict__ lse, u64 lse_stride0, u64 lse_stride1) {
  __shared__ __align__(512) u8 smem[8192];
  const u32 block_x = blockIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 q_at = (u64)q;
  const u32 tid = threadIdx.x;
  const u64 k_at = (u64)k;
  const u64 v_at = (u64)v;
  const u64 o_at = (u64)o;
  const u64 lse_at = (u64)lse;
  float acc[16];
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
  // copy q
  const u64 n1 = (i64)(int)b;
  const u64 n2 = (i64)(int)first;
  const u64 n3 = (i64)(int)h;
  const u64 at1 = q_at + n1 * (q_stride0 << 1) + n2 * (q_stride1 << 1) + n3 * (q_stride2 << 1);
  const u32 r3 = tid >> 2;
  const u32 r4 = (u32)q_stride1 << 1;
  const u32 r5 = tid & 3u;
  const u32 r6 = r5 << 3;
  const u64 at2 = at1 + (i64)(int)r3 * (int)r4 + (i64)(int)r6 * 2;
  const u32 r7 = Sq - (first + r3);
  const u32 r8 = tid >> 5;
  const u32 r9 = tid >> 3;
  const u32 r10 = (r9 & 3u) * 144u;
  const u32 r11 = (((tid & 7u) << 4) ^ r10) + (r8 << 9);
  const u32 r12 = smem_base + r11;
  const bool p1 = (int)r7 > 0;
  cp_async_cg_16_part(r12, at2, p1 ? 16u : 0u);
  const bool p2 = (int)r7 > 32;
  cp_async_cg_16_part(r12 + 2048, at2 + (i64)32 * (int)r4, p2 ? 16u : 0u);
  cp_async_commit();
  const float c = scale * 1.442695f;
  const u32 end = min(Sk, (int)(last + 64u));
  cp_async_wait<0>();
  __syncthreads();
  const u32 r13 = r9 & 1u;
  const u32 r14 = r13 << 9;
  const u32 r15 = r8 << 10;
  const u32 r16 = r14 + r15;
  const u32 r17 = ((tid & 1u) << 6) ^ (((tid >> 1) & 3u) * 144u);
  const u32 r18 = (tid >> 4) & 1u;
  const u32 r19 = r17 ^ (r18 << 4);
  u32 h1, h2, h3, h4;
  ldmatrix_x4(h1, h2, h3, h4, smem_base + (r19 + r16));
  const u32 r20 = r19 ^ 32u;
  u32 h5, h6, h7, h8;
  ldmatrix_x4(h5, h6, h7, h8, smem_base + (r20 + r16));
  __syncthreads();
  const bool p3 = (int)end > 0;
  // copy k
  const u64 at3 = k_at + n1 * (k_stride0 << 1);
  const u64 n4 = (i64)(int)kv_head;
  const u64 n5 = n4 * (k_stride2 << 1);
  const u32 r21 = (u32)k_stride1 << 1;
  const u32 r22 = kv_head < (u32)KVH ? (u32)Sk : 0u;
  const u32 r23 = (int)(r22 - r3) > 0 ? 16u : 0u;
  cp_async_cg_16_part_if(r12, at3 + n5 + (i64)(int)r3 * (int)r21 + (i64)(int)r6 * 2, r23, p3);
  cp_async_commit();
  // copy v
  const u64 at4 = v_at + n1 * (v_stride0 << 1);
  const u64 n6 = n4 * (v_stride2 << 1);
  const u32 r24 = (u32)v_stride1 << 1;
  cp_async_cg_16_part_if(r12 + 4096, at4 + n6 + (i64)(int)r3 * (int)r24 + (i64)(int)r6 * 2, r23, p3);
  cp_async_commit();
  // copy k
  const u64 n7 = k_stride1 << 6;
  cp_async_cg_16_part_if(r12 + 2048, at3 + n7 + n5 + (i64)(int)r3 * (int)r21 + (i64)(int)r6 * 2, (int)(r22 - (r3 + 32u)) > 0 ? 16u : 0u, (int)end > 32);
  cp_async_commit();
  const u32 r25 = min(max((int)(first + Sq * 0xffffffffu + Sk + 1u), 0) / 32, max(Sk, 0) / 32);
  const u32 r26 = (u32)min((int)r25, (int)(max((int)end, 0) + 31u) / 32) << 5;
  const u64 n8 = v_stride1 << 6;
  u64 at = at4 + n8 + n6 + (i64)(int)r3 * (int)r24 + (i64)(int)r6 * 2;
  u64 at_1 = at3 + (k_stride1 << 7) + n5 + (i64)(int)r3 * (int)r21 + (i64)(int)r6 * 2;
  // dot
  const u32 r27 = r18 << 9;
  const u32 r28 = r17 ^ (r13 << 4);
  const u32 r29 = r28 + r27;
  const u32 r30 = (r28 ^ 32u) + r27;
  const u32 r31 = r19 + r14;
  const u32 r32 = r20 + r14;
  u32 slot = 0u;
  #pragma unroll
  for (int e = 0; e < 16; ++e) {
    acc[e] = 0.0f;
  }
  max_1[0] = __uint_as_float(0xff800000u);
  max_1[1] = __uint_as_float(0xff800000u);
  sum[0] = 0.0f;
  sum[1] = 0.0f;
  for (int n = 0; n < (int)end; n += 32) {
    cp_async_wait<2>();
    __syncthreads();
    // copy v
    const u32 r33 = slot + 1u;
    const u32 r34 = r33 & 1u;
    const u32 r35 = n + r3;
    cp_async_cg_16_part_if(smem_base + (r34 << 11) + r11 + 4096, at, (int)(r22 - (r35 + 32u)) > 0 ? 16u : 0u, (int)(n + 32u) < (int)end);
    cp_async_commit();
    const u32 r36 = slot << 11;
    const u32 r37 = smem_base + r36;
    // dot
    const u32 r38 = r37 + r29;
    u32 h9, h10, h11, h12;
    ldmatrix_x4(h9, h10, h11, h12, r38);
    u32 h13, h14, h15, h16;
    ldmatrix_x4(h13, h14, h15, h16, r38 + 1024);
    const u32 r39 = r37 + r30;
    u32 h17, h18, h19, h20;
    ldmatrix_x4(h17, h18, h19, h20, r39);
    u32 h21, h22, h23, h24;
    ldmatrix_x4(h21, h22, h23, h24, r39 + 1024);
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      s[e] = 0.0f;
    }
    mma_m16n8k16_bf16_f32(s[0], s[1], s[2], s[3], h1, h2, h3, h4, h9, h10);
    #pragma unroll
    for (int e = 4; e < 8; ++e) {
      s[e] = 0.0f;
    }
    mma_m16n8k16_bf16_f32(s[4], s[5], s[6], s[7], h1, h2, h3, h4, h11, h12);
    #pragma unroll
    for (int e = 8; e < 12; ++e) {
      s[e] = 0.0f;
    }
    mma_m16n8k16_bf16_f32(s[8], s[9], s[10], s[11], h1, h2, h3, h4, h13, h14);
    #pragma unroll
    for (int e = 12; e < 16; ++e) {
      s[e] = 0.0f;
    }
    mma_m16n8k16_bf16_f32(s[12], s[13], s[14], s[15], h1, h2, h3, h4, h15, h16);
    mma_m16n8k16_bf16_f32(s[0], s[1], s[2], s[3], h5, h6, h7, h8, h17, h18);
    mma_m16n8k16_bf16_f32(s[4], s[5], s[6], s[7], h5, h6, h7, h8, h19, h20);
    mma_m16n8k16_bf16_f32(s[8], s[9], s[10], s[11], h5, h6, h7, h8, h21, h22);
    mma_m16n8k16_bf16_f32(s[12], s[13], s[14], s[15], h5, h6, h7, h8, h23, h24);
    if (n < (int)r26) {
    } else {
      const u32 r40 = ((r3 & 7u) ^ (r8 << 4)) + last;
      const u32 r41 = r40 + 8u;
      const u32 r42 = (r5 << 1) + n;
      const u32 r43 = r42 + 1u;
      const u32 r44 = r42 + 8u;
      const u32 r45 = r42 + 9u;
      const u32 r46 = r42 + 16u;
      const u32 r47 = r42 + 17u;
      const u32 r48 = r42 + 24u;
      const u32 r49 = r42 + 25u;
      const bool p4 = (int)r42 < Sk;
      const bool p5 = (int)r43 < Sk;
      const bool p6 = (int)r44 < Sk;
      const bool p7 = (int)r45 < Sk;
      const bool p8 = (int)r46 < Sk;
      const bool p9 = (int)r47 < Sk;
      const bool p10 = (int)r48 < Sk;
      const bool p11 = (int)r49 < Sk;
      // select
      s[0] = (int)r40 >= (int)r42 && p4 ? s[0] : __uint_as_float(0xff800000u);
      s[1] = (int)r40 >= (int)r43 && p5 ? s[1] : __uint_as_float(0xff800000u);
      s[2] = (int)r41 >= (int)r42 && p4 ? s[2] : __uint_as_float(0xff800000u);
      s[3] = (int)r41 >= (int)r43 && p5 ? s[3] : __uint_as_float(0xff800000u);
      s[4] = (int)r40 >= (int)r44 && p6 ? s[4] : __uint_as_float(0xff800000u);
      s[5] = (int)r40 >= (int)r45 && p7 ? s[5] : __uint_as_float(0xff800000u);
      s[6] = (int)r41 >= (int)r44 && p6 ? s[6] : __uint_as_float(0xff800000u);
      s[7] = (int)r41 >= (int)r45 && p7 ? s[7] : __uint_as_float(0xff800000u);
      s[8] = (int)r40 >= (int)r46 && p8 ? s[8] : __uint_as_float(0xff800000u);
      s[9] = (int)r40 >= (int)r47 && p9 ? s[9] : __uint_as_float(0xff800000u);
      s[10] = (int)r41 >= (int)r46 && p8 ? s[10] : __uint_as_float(0xff800000u);
      s[11] = (int)r41 >= (int)r47 && p9 ? s[11] : __uint_as_float(0xff800000u);
      s[12] = (int)r40 >= (int)r48 && p10 ? s[12] : __uint_as_float(0xff800000u);
      s[13] = (int)r40 >= (int)r49 && p11 ? s[13] : __uint_as_float(0xff800000u);
      s[14] = (int)r41 >= (int)r48 && p10 ? s[14] : __uint_as_float(0xff800000u);
      s[15] = (int)r41 >= (int)r49 && p11 ? s[15] : __uint_as_float(0xff800000u);
    }
    // reduce
    const float f1 = fmaxf(s[0], s[8]);
    const float f2 = fmaxf(s[1], s[9]);
    const float f3 = fmaxf(s[4], s[12]);
    const float f4 = fmaxf(s[5], s[13]);
    const float f5 = fmaxf(fmaxf(f1, f3), fmaxf(f2, f4));
    const float f6 = __shfl_xor_sync(0xffffffffu, f5, 1);
    const float f7 = fmaxf(f5, f6);
    const float f8 = __shfl_xor_sync(0xffffffffu, f7, 2);
    const float f9 = fmaxf(s[2], s[10]);
    const float f10 = fmaxf(s[3], s[11]);
    const float f11 = fmaxf(s[6], s[14]);
    const float f12 = fmaxf(s[7], s[15]);
    const float f13 = fmaxf(fmaxf(f9, f11), fmaxf(f10, f12));
    const float f14 = __shfl_xor_sync(0xffffffffu, f13, 1);
    const float f15 = fmaxf(f13, f14);
    const float f16 = __shfl_xor_sync(0xffffffffu, f15, 2);
    new_max[0] = fmaxf(max_1[0], fmaxf(f7, f8));
    new_max[1] = fmaxf(max_1[1], fmaxf(f15, f16));
    // select
    const float f17 = new_max[0] == __uint_as_float(0xff800000u) ? 0.0f : new_max[0];
    const float f18 = new_max[1] == __uint_as_float(0xff800000u) ? 0.0f : new_max[1];
    const float f19 = -(f17 * c);
    const float f20 = -(f18 * c);
    const float f21 = fmaf(s[0], c, f19);
    const float f22 = fmaf(s[1], c, f19);
    const float f23 = fmaf(s[2], c, f20);
    const float f24 = fmaf(s[3], c, f20);
    const float f25 = fmaf(s[4], c, f19);
    const float f26 = fmaf(s[5], c, f19);
    const float f27 = fmaf(s[6], c, f20);
    const float f28 = fmaf(s[7], c, f20);
    const float f29 = fmaf(s[8], c, f19);
    const float f30 = fmaf(s[9], c, f19);
    const float f31 = fmaf(s[10], c, f20);
    const float f32 = fmaf(s[11], c, f20);
    const float f33 = fmaf(s[12], c, f19);
    const float f34 = fmaf(s[13], c, f19);
    const float f35 = fmaf(s[14], c, f20);
    const float f36 = fmaf(s[15], c, f20);
    // p = exp2
    p[0] = ex2(f21);
    p[1] = ex2(f22);
    p[2] = ex2(f23);
    p[3] = ex2(f24);
    p[4] = ex2(f25);
    p[5] = ex2(f26);
    p[6] = ex2(f27);
    p[7] = ex2(f28);
    p[8] = ex2(f29);
    p[9] = ex2(f30);
    p[10] = ex2(f31);
    p[11] = ex2(f32);
    p[12] = ex2(f33);
    p[13] = ex2(f34);
    p[14] = ex2(f35);
    p[15] = ex2(f36);
    const float f37 = max_1[0] - f17;
    const float f38 = max_1[1] - f18;
    // rescale = exp2
    rescale[0] = ex2(f37 * c);
    rescale[1] = ex2(f38 * c);
    const u32 h25 = cvt_bf16x2(p[1], p[0]);
    const u32 h26 = cvt_bf16x2(p[3], p[2]);
    const u32 h27 = cvt_bf16x2(p[5], p[4]);
    const u32 h28 = cvt_bf16x2(p[7], p[6]);
    const u32 h29 = cvt_bf16x2(p[9], p[8]);
    const u32 h30 = cvt_bf16x2(p[11], p[10]);
    const u32 h31 = cvt_bf16x2(p[13], p[12]);
    const u32 h32 = cvt_bf16x2(p[15], p[14]);
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
    cp_async_wait<2>();
    __syncthreads();
    // copy k
    cp_async_cg_16_part_if(r37 + r11, at_1, (int)(r22 - (r35 + 64u)) > 0 ? 16u : 0u, (int)(n + 64u) < (int)end);
    cp_async_commit();
    // dot
    const u32 r50 = r37 + r31;
    u32 h33, h34, h35, h36;
    ldmatrix_x4_trans(h33, h34, h35, h36, r50 + 4096);
    const u32 r51 = r37 + r32;
    u32 h37, h38, h39, h40;
    ldmatrix_x4_trans(h37, h38, h39, h40, r51 + 4096);
    u32 h41, h42, h43, h44;
    ldmatrix_x4_trans(h41, h42, h43, h44, r50 + 5120);
    u32 h45, h46, h47, h48;
    ldmatrix_x4_trans(h45, h46, h47, h48, r51 + 5120);
    mma_m16n8k16_bf16_f32(acc[0], acc[1], acc[2], acc[3], h25, h26, h27, h28, h33, h34);
    mma_m16n8k16_bf16_f32(acc[4], acc[5], acc[6], acc[7], h25, h26, h27, h28, h35, h36);
    mma_m16n8k16_bf16_f32(acc[8], acc[9], acc[10], acc[11], h25, h26, h27, h28, h37, h38);
    mma_m16n8k16_bf16_f32(acc[12], acc[13], acc[14], acc[15], h25, h26, h27, h28, h39, h40);
    mma_m16n8k16_bf16_f32(acc[0], acc[1], acc[2], acc[3], h29, h30, h31, h32, h41, h42);
    mma_m16n8k16_bf16_f32(acc[4], acc[5], acc[6], acc[7], h29, h30, h31, h32, h43, h44);
    mma_m16n8k16_bf16_f32(acc[8], acc[9], acc[10], acc[11], h29, h30, h31, h32, h45, h46);
    mma_m16n8k16_bf16_f32(acc[12], acc[13], acc[14], acc[15], h29, h30, h31, h32, h47, h48);
    // reduce
    const float f39 = p[0] + p[8] + (p[4] + p[12]) + (p[1] + p[9] + (p[5] + p[13]));
    const float f40 = __shfl_xor_sync(0xffffffffu, f39, 1);
    const float f41 = f39 + f40;
    const float f42 = __shfl_xor_sync(0xffffffffu, f41, 2);
    const float f43 = p[2] + p[10] + (p[6] + p[14]) + (p[3] + p[11] + (p[7] + p[15]));
    const float f44 = __shfl_xor_sync(0xffffffffu, f43, 1);
    const float f45 = f43 + f44;
    const float f46 = __shfl_xor_sync(0xffffffffu, f45, 2);
    sum[0] = fmaf(sum[0], rescale[0], f41 + f42);
    sum[1] = fmaf(sum[1], rescale[1], f45 + f46);
    at = at + n8;
    at_1 = at_1 + n7;
    max_1[0] = new_max[0];
    max_1[1] = new_max[1];
    slot = r34;
  }
  const bool p12 = sum[0] == 0.0f;
  const bool p13 = sum[1] == 0.0f;
  // select
  const float f47 = p12 ? 1.0f : sum[0];
  const float f48 = p13 ? 1.0f : sum[1];
  const float f49 = rcp(f47);
  const float f50 = rcp(f48);
  const float f51 = acc[0] * f49;
  const float f52 = acc[1] * f49;
  const float f53 = acc[2] * f50;
  const float f54 = acc[3] * f50;
  const float f55 = acc[4] * f49;
  const float f56 = acc[5] * f49;
  const float f57 = acc[6] * f50;
  const float f58 = acc[7] * f50;
  const float f59 = acc[8] * f49;
  const float f60 = acc[9] * f49;
  const float f61 = acc[10] * f50;
  const float f62 = acc[11] * f50;
  const float f63 = acc[12] * f49;
  const float f64 = acc[13] * f49;
  const float f65 = acc[14] * f50;
  const float f66 = acc[15] * f50;
  // convert
  __syncthreads();
  const u32 r52 = ((r5 << 2) ^ ((r3 & 1u) << 6)) ^ r10;
  const u32 r53 = smem_base + (r52 + r15);
  st_shared(r53, cvt_bf16x2(f52, f51));
  st_shared(r53 + 512, cvt_bf16x2(f54, f53));
  const u32 r54 = smem_base + ((r52 ^ 16u) + r15);
  st_shared(r54, cvt_bf16x2(f56, f55));
  st_shared(r54 + 512, cvt_bf16x2(f58, f57));
  const u32 r55 = smem_base + ((r52 ^ 32u) + r15);
  st_shared(r55, cvt_bf16x2(f60, f59));
  st_shared(r55 + 512, cvt_bf16x2(f62, f61));
  const u32 r56 = smem_base + ((r52 ^ 48u) + r15);
  st_shared(r56, cvt_bf16x2(f64, f63));
  st_shared(r56 + 512, cvt_bf16x2(f66, f65));
  __syncthreads();
  u32 h49, h50, h51, h52;
  ld_shared_v4(h49, h50, h51, h52, r12);
  u32 h53, h54, h55, h56;
  ld_shared_v4(h53, h54, h55, h56, r12 + 2048);
  // store o
  const u64 at5 = o_at + n1 * (o_stride0 << 1) + n2 * (o_stride1 << 1) + n3 * (o_stride2 << 1);
  const u32 r57 = (u32)o_stride1 << 1;
  const u64 at6 = at5 + (i64)(int)r3 * (int)r57 + (i64)(int)r6 * 2;
  if (p1) {
    st_global_v4(at6, h49, h50, h51, h52);
  }
  if (p2) {
    st_global_v4(at6 + (i64)32 * (int)r57, h53, h54, h55, h56);
  }
  const bool p14 = sum[0] < 1.1754944e-38f;
  const float f67 = sum[0] * 4.2949673e+09f;
  const float f68 = p14 ? f67 : sum[0];
  const float f69 = lg2(f68);
  const bool p15 = sum[1] < 1.1754944e-38f;
  const float f70 = sum[1] * 4.2949673e+09f;
  const float f71 = p15 ? f70 : sum[1];
  const float f72 = lg2(f71);
  const float f73 = fmaf(max_1[0], scale, (p14 ? f69 - 32.0f : f69) * 0.6931472f);
  const float f74 = fmaf(max_1[1], scale, (p15 ? f72 - 32.0f : f72) * 0.6931472f);
  // store lse
  const u64 at7 = lse_at + n1 * (lse_stride0 << 2) + n3 * (lse_stride1 << 2) + (i64)(int)first * 4;
  const u32 r58 = (r3 & 7u) ^ (r8 << 4);
  const u64 at8 = at7 + (i64)(int)r58 * 4;
  const u32 r59 = Sq - (first + r58);
  const bool p16 = r5 == 0u;
  if (p16 && (int)r59 > 0) {
    st_global_f32(at8, p12 ? __uint_as_float(0xff800000u) : f73);
  }
  if (p16 && (int)r59 > 8) {
    st_global_f32(at8 + 32, p13 ? __uint_as_float(0xff800000u) : f74);
  }
}
