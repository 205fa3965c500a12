// For sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

extern __shared__ __align__(128) u8 smem[];

static __device__ __forceinline__ u32 read_laneid() {
  u32 d;
  asm("mov.u32 %0, %%laneid;" : "=r"(d) : );
  return d;
}

static __device__ __forceinline__ void cp_async_cg_16_if(u32 to, u64 from, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }" :  : "r"(to), "l"(from), "r"((u32)p) : "memory");
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

static __device__ __forceinline__ void mma_m16n8k16_f16_f32(float &d0, float &d1, float &d2, float &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void st_global_v2_f32(u64 at, float r0, float r1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" :  : "l"(at), "f"(r0), "f"(r1) : "memory");
}

// 16384 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(32)
double_buffer(const u16 *__restrict__ a, const u16 *__restrict__ b, float *__restrict__ c, int k) {
  const u64 a_at = (u64)a;
  const u64 b_at = (u64)b;
  const u64 c_at = (u64)c;
  const u32 lane = read_laneid();
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  float acc[128];
  const u32 r1 = lane >> 2;
  const u32 r2 = lane & 3u;
  const u64 pitch = (u64)(i64)k << 1;
  // first stage
  const bool p1 = k > 0;
  const u32 r3 = (r1 << 6) + ((r2 ^ (r1 >> 1)) << 4);
  const u32 r4 = smem_base + r3;
  const u64 n1 = (i64)(int)r1;
  const u64 n2 = n1 * pitch;
  const u64 n3 = (i64)(int)(r2 << 4);
  u64 at = a_at + n2 + n3;
  cp_async_cg_16_if(r4, at, p1);
  u64 at_1 = b_at + n2 + n3;
  cp_async_cg_16_if(r4 + 4096, at_1, p1);
  const u64 n4 = (n1 + 8ull) * pitch;
  cp_async_cg_16_if(r4 + 512, a_at + n4 + n3, p1);
  cp_async_cg_16_if(r4 + 4608, b_at + n4 + n3, p1);
  const u64 n5 = (n1 + 16ull) * pitch;
  cp_async_cg_16_if(r4 + 1024, a_at + n5 + n3, p1);
  cp_async_cg_16_if(r4 + 5120, b_at + n5 + n3, p1);
  const u64 n6 = (n1 + 24ull) * pitch;
  cp_async_cg_16_if(r4 + 1536, a_at + n6 + n3, p1);
  cp_async_cg_16_if(r4 + 5632, b_at + n6 + n3, p1);
  const u64 n7 = (n1 + 32ull) * pitch;
  cp_async_cg_16_if(r4 + 2048, a_at + n7 + n3, p1);
  cp_async_cg_16_if(r4 + 6144, b_at + n7 + n3, p1);
  const u64 n8 = (n1 + 40ull) * pitch;
  cp_async_cg_16_if(r4 + 2560, a_at + n8 + n3, p1);
  cp_async_cg_16_if(r4 + 6656, b_at + n8 + n3, p1);
  const u64 n9 = (n1 + 48ull) * pitch;
  cp_async_cg_16_if(r4 + 3072, a_at + n9 + n3, p1);
  cp_async_cg_16_if(r4 + 7168, b_at + n9 + n3, p1);
  const u64 n10 = (n1 + 56ull) * pitch;
  cp_async_cg_16_if(r4 + 3584, a_at + n10 + n3, p1);
  cp_async_cg_16_if(r4 + 7680, b_at + n10 + n3, p1);
  cp_async_commit();
  const u64 n11 = (i64)k * 16;
  // multiply this one
  const u32 r5 = lane & 15u;
  const u32 r6 = lane >> 4;
  const u32 r7 = (lane & 7u) | (r6 << 3);
  const u32 r8 = (lane >> 3) & 1u;
  const u32 r9 = (r5 >> 1) & 3u;
  const u32 r10 = r5 << 6;
  const u32 r11 = r10 + ((r6 ^ r9) << 4);
  const u32 r12 = (r7 >> 1) & 3u;
  const u32 r13 = r7 << 6;
  const u32 r14 = r13 + ((r8 ^ r12) << 4);
  const u32 r15 = r10 + (((r6 + 2u) ^ r9) << 4);
  const u32 r16 = r13 + (((r8 + 2u) ^ r12) << 4);
  // first stage
  u32 slot = 0u;
  #pragma unroll
  for (int e = 0; e < 128; ++e) {
    acc[e] = 0.0f;
  }
  for (int kk = 0; kk < k; kk += 32) {
    const u32 r17 = slot ^ 8192u;
    // fill the other stage
    const bool p2 = (int)((u32)k - kk - 32u) > 0;
    const u32 r18 = smem_base + r17 + r3;
    cp_async_cg_16_if(r18, at + 64, p2);
    cp_async_cg_16_if(r18 + 4096, at_1 + 64, p2);
    const u64 at1 = at + n11;
    cp_async_cg_16_if(r18 + 512, at1 + 64, p2);
    const u64 at2 = at_1 + n11;
    cp_async_cg_16_if(r18 + 4608, at2 + 64, p2);
    const u64 at3 = at1 + n11;
    cp_async_cg_16_if(r18 + 1024, at3 + 64, p2);
    const u64 at4 = at2 + n11;
    cp_async_cg_16_if(r18 + 5120, at4 + 64, p2);
    const u64 at5 = at3 + n11;
    cp_async_cg_16_if(r18 + 1536, at5 + 64, p2);
    const u64 at6 = at4 + n11;
    cp_async_cg_16_if(r18 + 5632, at6 + 64, p2);
    const u64 at7 = at5 + n11;
    cp_async_cg_16_if(r18 + 2048, at7 + 64, p2);
    const u64 at8 = at6 + n11;
    cp_async_cg_16_if(r18 + 6144, at8 + 64, p2);
    const u64 at9 = at7 + n11;
    cp_async_cg_16_if(r18 + 2560, at9 + 64, p2);
    const u64 at10 = at8 + n11;
    cp_async_cg_16_if(r18 + 6656, at10 + 64, p2);
    const u64 at11 = at9 + n11;
    cp_async_cg_16_if(r18 + 3072, at11 + 64, p2);
    const u64 at12 = at10 + n11;
    cp_async_cg_16_if(r18 + 7168, at12 + 64, p2);
    cp_async_cg_16_if(r18 + 3584, at11 + n11 + 64, p2);
    cp_async_cg_16_if(r18 + 7680, at12 + n11 + 64, p2);
    cp_async_commit();
    cp_async_wait<1>();
    __syncwarp();
    // multiply this one
    const u32 r19 = smem_base + slot;
    const u32 r20 = r19 + r11;
    u32 r21, r22, r23, r24;
    ldmatrix_x4(r21, r22, r23, r24, r20);
    u32 r25, r26, r27, r28;
    ldmatrix_x4(r25, r26, r27, r28, r20 + 1024);
    u32 r29, r30, r31, r32;
    ldmatrix_x4(r29, r30, r31, r32, r20 + 2048);
    u32 r33, r34, r35, r36;
    ldmatrix_x4(r33, r34, r35, r36, r20 + 3072);
    const u32 r37 = r19 + r14;
    u32 r38, r39, r40, r41;
    ldmatrix_x4(r38, r39, r40, r41, r37 + 4096);
    mma_m16n8k16_f16_f32(acc[0], acc[1], acc[2], acc[3], r21, r22, r23, r24, r38, r39);
    mma_m16n8k16_f16_f32(acc[4], acc[5], acc[6], acc[7], r21, r22, r23, r24, r40, r41);
    mma_m16n8k16_f16_f32(acc[32], acc[33], acc[34], acc[35], r25, r26, r27, r28, r38, r39);
    mma_m16n8k16_f16_f32(acc[36], acc[37], acc[38], acc[39], r25, r26, r27, r28, r40, r41);
    mma_m16n8k16_f16_f32(acc[64], acc[65], acc[66], acc[67], r29, r30, r31, r32, r38, r39);
    mma_m16n8k16_f16_f32(acc[68], acc[69], acc[70], acc[71], r29, r30, r31, r32, r40, r41);
    mma_m16n8k16_f16_f32(acc[96], acc[97], acc[98], acc[99], r33, r34, r35, r36, r38, r39);
    mma_m16n8k16_f16_f32(acc[100], acc[101], acc[102], acc[103], r33, r34, r35, r36, r40, r41);
    u32 r42, r43, r44, r45;
    ldmatrix_x4(r42, r43, r44, r45, r37 + 5120);
    mma_m16n8k16_f16_f32(acc[8], acc[9], acc[10], acc[11], r21, r22, r23, r24, r42, r43);
    mma_m16n8k16_f16_f32(acc[12], acc[13], acc[14], acc[15], r21, r22, r23, r24, r44, r45);
    mma_m16n8k16_f16_f32(acc[40], acc[41], acc[42], acc[43], r25, r26, r27, r28, r42, r43);
    mma_m16n8k16_f16_f32(acc[44], acc[45], acc[46], acc[47], r25, r26, r27, r28, r44, r45);
    mma_m16n8k16_f16_f32(acc[72], acc[73], acc[74], acc[75], r29, r30, r31, r32, r42, r43);
    mma_m16n8k16_f16_f32(acc[76], acc[77], acc[78], acc[79], r29, r30, r31, r32, r44, r45);
    mma_m16n8k16_f16_f32(acc[104], acc[105], acc[106], acc[107], r33, r34, r35, r36, r42, r43);
    mma_m16n8k16_f16_f32(acc[108], acc[109], acc[110], acc[111], r33, r34, r35, r36, r44, r45);
    u32 r46, r47, r48, r49;
    ldmatrix_x4(r46, r47, r48, r49, r37 + 6144);
    mma_m16n8k16_f16_f32(acc[16], acc[17], acc[18], acc[19], r21, r22, r23, r24, r46, r47);
    mma_m16n8k16_f16_f32(acc[20], acc[21], acc[22], acc[23], r21, r22, r23, r24, r48, r49);
    mma_m16n8k16_f16_f32(acc[48], acc[49], acc[50], acc[51], r25, r26, r27, r28, r46, r47);
    mma_m16n8k16_f16_f32(acc[52], acc[53], acc[54], acc[55], r25, r26, r27, r28, r48, r49);
    mma_m16n8k16_f16_f32(acc[80], acc[81], acc[82], acc[83], r29, r30, r31, r32, r46, r47);
    mma_m16n8k16_f16_f32(acc[84], acc[85], acc[86], acc[87], r29, r30, r31, r32, r48, r49);
    mma_m16n8k16_f16_f32(acc[112], acc[113], acc[114], acc[115], r33, r34, r35, r36, r46, r47);
    mma_m16n8k16_f16_f32(acc[116], acc[117], acc[118], acc[119], r33, r34, r35, r36, r48, r49);
    u32 r50, r51, r52, r53;
    ldmatrix_x4(r50, r51, r52, r53, r37 + 7168);
    mma_m16n8k16_f16_f32(acc[24], acc[25], acc[26], acc[27], r21, r22, r23, r24, r50, r51);
    mma_m16n8k16_f16_f32(acc[28], acc[29], acc[30], acc[31], r21, r22, r23, r24, r52, r53);
    mma_m16n8k16_f16_f32(acc[56], acc[57], acc[58], acc[59], r25, r26, r27, r28, r50, r51);
    mma_m16n8k16_f16_f32(acc[60], acc[61], acc[62], acc[63], r25, r26, r27, r28, r52, r53);
    mma_m16n8k16_f16_f32(acc[88], acc[89], acc[90], acc[91], r29, r30, r31, r32, r50, r51);
    mma_m16n8k16_f16_f32(acc[92], acc[93], acc[94], acc[95], r29, r30, r31, r32, r52, r53);
    mma_m16n8k16_f16_f32(acc[120], acc[121], acc[122], acc[123], r33, r34, r35, r36, r50, r51);
    mma_m16n8k16_f16_f32(acc[124], acc[125], acc[126], acc[127], r33, r34, r35, r36, r52, r53);
    const u32 r54 = r19 + r15;
    u32 r55, r56, r57, r58;
    ldmatrix_x4(r55, r56, r57, r58, r54);
    u32 r59, r60, r61, r62;
    ldmatrix_x4(r59, r60, r61, r62, r54 + 1024);
    u32 r63, r64, r65, r66;
    ldmatrix_x4(r63, r64, r65, r66, r54 + 2048);
    u32 r67, r68, r69, r70;
    ldmatrix_x4(r67, r68, r69, r70, r54 + 3072);
    const u32 r71 = r19 + r16;
    u32 r72, r73, r74, r75;
    ldmatrix_x4(r72, r73, r74, r75, r71 + 4096);
    mma_m16n8k16_f16_f32(acc[0], acc[1], acc[2], acc[3], r55, r56, r57, r58, r72, r73);
    mma_m16n8k16_f16_f32(acc[4], acc[5], acc[6], acc[7], r55, r56, r57, r58, r74, r75);
    mma_m16n8k16_f16_f32(acc[32], acc[33], acc[34], acc[35], r59, r60, r61, r62, r72, r73);
    mma_m16n8k16_f16_f32(acc[36], acc[37], acc[38], acc[39], r59, r60, r61, r62, r74, r75);
    mma_m16n8k16_f16_f32(acc[64], acc[65], acc[66], acc[67], r63, r64, r65, r66, r72, r73);
    mma_m16n8k16_f16_f32(acc[68], acc[69], acc[70], acc[71], r63, r64, r65, r66, r74, r75);
    mma_m16n8k16_f16_f32(acc[96], acc[97], acc[98], acc[99], r67, r68, r69, r70, r72, r73);
    mma_m16n8k16_f16_f32(acc[100], acc[101], acc[102], acc[103], r67, r68, r69, r70, r74, r75);
    u32 r76, r77, r78, r79;
    ldmatrix_x4(r76, r77, r78, r79, r71 + 5120);
    mma_m16n8k16_f16_f32(acc[8], acc[9], acc[10], acc[11], r55, r56, r57, r58, r76, r77);
    mma_m16n8k16_f16_f32(acc[12], acc[13], acc[14], acc[15], r55, r56, r57, r58, r78, r79);
    mma_m16n8k16_f16_f32(acc[40], acc[41], acc[42], acc[43], r59, r60, r61, r62, r76, r77);
    mma_m16n8k16_f16_f32(acc[44], acc[45], acc[46], acc[47], r59, r60, r61, r62, r78, r79);
    mma_m16n8k16_f16_f32(acc[72], acc[73], acc[74], acc[75], r63, r64, r65, r66, r76, r77);
    mma_m16n8k16_f16_f32(acc[76], acc[77], acc[78], acc[79], r63, r64, r65, r66, r78, r79);
    mma_m16n8k16_f16_f32(acc[104], acc[105], acc[106], acc[107], r67, r68, r69, r70, r76, r77);
    mma_m16n8k16_f16_f32(acc[108], acc[109], acc[110], acc[111], r67, r68, r69, r70, r78, r79);
    u32 r80, r81, r82, r83;
    ldmatrix_x4(r80, r81, r82, r83, r71 + 6144);
    mma_m16n8k16_f16_f32(acc[16], acc[17], acc[18], acc[19], r55, r56, r57, r58, r80, r81);
    mma_m16n8k16_f16_f32(acc[20], acc[21], acc[22], acc[23], r55, r56, r57, r58, r82, r83);
    mma_m16n8k16_f16_f32(acc[48], acc[49], acc[50], acc[51], r59, r60, r61, r62, r80, r81);
    mma_m16n8k16_f16_f32(acc[52], acc[53], acc[54], acc[55], r59, r60, r61, r62, r82, r83);
    mma_m16n8k16_f16_f32(acc[80], acc[81], acc[82], acc[83], r63, r64, r65, r66, r80, r81);
    mma_m16n8k16_f16_f32(acc[84], acc[85], acc[86], acc[87], r63, r64, r65, r66, r82, r83);
    mma_m16n8k16_f16_f32(acc[112], acc[113], acc[114], acc[115], r67, r68, r69, r70, r80, r81);
    mma_m16n8k16_f16_f32(acc[116], acc[117], acc[118], acc[119], r67, r68, r69, r70, r82, r83);
    u32 r84, r85, r86, r87;
    ldmatrix_x4(r84, r85, r86, r87, r71 + 7168);
    mma_m16n8k16_f16_f32(acc[24], acc[25], acc[26], acc[27], r55, r56, r57, r58, r84, r85);
    mma_m16n8k16_f16_f32(acc[28], acc[29], acc[30], acc[31], r55, r56, r57, r58, r86, r87);
    mma_m16n8k16_f16_f32(acc[56], acc[57], acc[58], acc[59], r59, r60, r61, r62, r84, r85);
    mma_m16n8k16_f16_f32(acc[60], acc[61], acc[62], acc[63], r59, r60, r61, r62, r86, r87);
    mma_m16n8k16_f16_f32(acc[88], acc[89], acc[90], acc[91], r63, r64, r65, r66, r84, r85);
    mma_m16n8k16_f16_f32(acc[92], acc[93], acc[94], acc[95], r63, r64, r65, r66, r86, r87);
    mma_m16n8k16_f16_f32(acc[120], acc[121], acc[122], acc[123], r67, r68, r69, r70, r84, r85);
    mma_m16n8k16_f16_f32(acc[124], acc[125], acc[126], acc[127], r67, r68, r69, r70, r86, r87);
    __syncwarp();
    at = at + 64ull;
    at_1 = at_1 + 64ull;
    slot = r17;
  }
  // store
  const u64 at13 = c_at + (u64)((r1 << 8) + (r2 << 3));
  st_global_v2_f32(at13, acc[0], acc[1]);
  st_global_v2_f32(at13 + 2048, acc[2], acc[3]);
  st_global_v2_f32(at13 + 32, acc[4], acc[5]);
  st_global_v2_f32(at13 + 2080, acc[6], acc[7]);
  st_global_v2_f32(at13 + 64, acc[8], acc[9]);
  st_global_v2_f32(at13 + 2112, acc[10], acc[11]);
  st_global_v2_f32(at13 + 96, acc[12], acc[13]);
  st_global_v2_f32(at13 + 2144, acc[14], acc[15]);
  st_global_v2_f32(at13 + 128, acc[16], acc[17]);
  st_global_v2_f32(at13 + 2176, acc[18], acc[19]);
  st_global_v2_f32(at13 + 160, acc[20], acc[21]);
  st_global_v2_f32(at13 + 2208, acc[22], acc[23]);
  st_global_v2_f32(at13 + 192, acc[24], acc[25]);
  st_global_v2_f32(at13 + 2240, acc[26], acc[27]);
  st_global_v2_f32(at13 + 224, acc[28], acc[29]);
  st_global_v2_f32(at13 + 2272, acc[30], acc[31]);
  st_global_v2_f32(at13 + 4096, acc[32], acc[33]);
  st_global_v2_f32(at13 + 6144, acc[34], acc[35]);
  st_global_v2_f32(at13 + 4128, acc[36], acc[37]);
  st_global_v2_f32(at13 + 6176, acc[38], acc[39]);
  st_global_v2_f32(at13 + 4160, acc[40], acc[41]);
  st_global_v2_f32(at13 + 6208, acc[42], acc[43]);
  st_global_v2_f32(at13 + 4192, acc[44], acc[45]);
  st_global_v2_f32(at13 + 6240, acc[46], acc[47]);
  st_global_v2_f32(at13 + 4224, acc[48], acc[49]);
  st_global_v2_f32(at13 + 6272, acc[50], acc[51]);
  st_global_v2_f32(at13 + 4256, acc[52], acc[53]);
  st_global_v2_f32(at13 + 6304, acc[54], acc[55]);
  st_global_v2_f32(at13 + 4288, acc[56], acc[57]);
  st_global_v2_f32(at13 + 6336, acc[58], acc[59]);
  st_global_v2_f32(at13 + 4320, acc[60], acc[61]);
  st_global_v2_f32(at13 + 6368, acc[62], acc[63]);
  st_global_v2_f32(at13 + 8192, acc[64], acc[65]);
  st_global_v2_f32(at13 + 10240, acc[66], acc[67]);
  st_global_v2_f32(at13 + 8224, acc[68], acc[69]);
  st_global_v2_f32(at13 + 10272, acc[70], acc[71]);
  st_global_v2_f32(at13 + 8256, acc[72], acc[73]);
  st_global_v2_f32(at13 + 10304, acc[74], acc[75]);
  st_global_v2_f32(at13 + 8288, acc[76], acc[77]);
  st_global_v2_f32(at13 + 10336, acc[78], acc[79]);
  st_global_v2_f32(at13 + 8320, acc[80], acc[81]);
  st_global_v2_f32(at13 + 10368, acc[82], acc[83]);
  st_global_v2_f32(at13 + 8352, acc[84], acc[85]);
  st_global_v2_f32(at13 + 10400, acc[86], acc[87]);
  st_global_v2_f32(at13 + 8384, acc[88], acc[89]);
  st_global_v2_f32(at13 + 10432, acc[90], acc[91]);
  st_global_v2_f32(at13 + 8416, acc[92], acc[93]);
  st_global_v2_f32(at13 + 10464, acc[94], acc[95]);
  st_global_v2_f32(at13 + 12288, acc[96], acc[97]);
  st_global_v2_f32(at13 + 14336, acc[98], acc[99]);
  st_global_v2_f32(at13 + 12320, acc[100], acc[101]);
  st_global_v2_f32(at13 + 14368, acc[102], acc[103]);
  st_global_v2_f32(at13 + 12352, acc[104], acc[105]);
  st_global_v2_f32(at13 + 14400, acc[106], acc[107]);
  st_global_v2_f32(at13 + 12384, acc[108], acc[109]);
  st_global_v2_f32(at13 + 14432, acc[110], acc[111]);
  st_global_v2_f32(at13 + 12416, acc[112], acc[113]);
  st_global_v2_f32(at13 + 14464, acc[114], acc[115]);
  st_global_v2_f32(at13 + 12448, acc[116], acc[117]);
  st_global_v2_f32(at13 + 14496, acc[118], acc[119]);
  st_global_v2_f32(at13 + 12480, acc[120], acc[121]);
  st_global_v2_f32(at13 + 14528, acc[122], acc[123]);
  st_global_v2_f32(at13 + 12512, acc[124], acc[125]);
  st_global_v2_f32(at13 + 14560, acc[126], acc[127]);
}
