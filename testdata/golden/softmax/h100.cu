// For sm_90.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ void ld_global_nc_v4_if(u32 &r0, u32 &r1, u32 &r2, u32 &r3, u64 at, bool p) {
  asm("{ .reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(at), "r"((u32)p));
}

static __device__ __forceinline__ void unpack_bf16x2(u16 &r0, u16 &r1, u32 a) {
  asm("mov.b32 {%0, %1}, %2;" : "=h"(r0), "=h"(r1) : "r"(a));
}

static __device__ __forceinline__ float cvt_bf16(u16 a) {
  float d;
  asm("cvt.f32.bf16 %0, %1;" : "=f"(d) : "h"(a));
  return d;
}

static __device__ __forceinline__ void st_shared_f32_if(u32 at, float r0, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p st.shared.b32 [%0], %1; }" :  : "r"(at), "f"(r0), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ float ld_shared_f32(u32 at) {
  float d;
  asm volatile("ld.shared.b32 %0, [%1];" : "=f"(d) : "r"(at) : "memory");
  return d;
}

static __device__ __forceinline__ float ex2(float a) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ float rcp(float a) {
  float d;
  asm("rcp.rn.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

static __device__ __forceinline__ u32 cvt_bf16x2(float a, float b) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a), "f"(b));
  return d;
}

static __device__ __forceinline__ void st_global_v4_if(u64 at, u32 r0, u32 r1, u32 r2, u32 r3, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1, %2, %3, %4}; }" :  : "l"(at), "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"((u32)p) : "memory");
}

// 32 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
softmax(int R, int N, const u16 *__restrict__ x, u64 x_stride0, u16 *__restrict__ y, u64 y_stride0) {
  __shared__ __align__(16) u8 smem[32];
  const u32 block_x = blockIdx.x;
  const u64 x_at = (u64)x;
  const u32 tid = threadIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u64 y_at = (u64)y;
  const u32 r1 = max(N, 0);
  const u32 r2 = (u32)min((int)r1 / 4096, (int)(r1 + 4095u) / 4096) << 12;
  const u32 r3 = tid << 3;
  const u64 n1 = (i64)(int)block_x;
  const u64 at1 = x_at + n1 * (x_stride0 << 1);
  u64 at = at1 + (i64)(int)r3 * 2;
  const u32 r4 = smem_base + ((tid >> 5) << 2);
  // reduce
  const bool p1 = (tid & 31u) == 0u;
  u64 at_1 = at;
  float f1 = __uint_as_float(0xff800000u);
  float f2 = 0.0f;
  for (int i = 0; i < (int)r2; i += 4096) {
    // load x
    const u32 r5 = N - (i + r3);
    u32 h1, h2, h3, h4;
    ld_global_nc_v4_if(h1, h2, h3, h4, at_1, (int)r5 > 0);
    u32 h5, h6, h7, h8;
    ld_global_nc_v4_if(h5, h6, h7, h8, at_1 + 4096, (int)r5 > 2048);
    u16 h9, h10;
    unpack_bf16x2(h9, h10, h1);
    u16 h11, h12;
    unpack_bf16x2(h11, h12, h2);
    u16 h13, h14;
    unpack_bf16x2(h13, h14, h3);
    u16 h15, h16;
    unpack_bf16x2(h15, h16, h4);
    u16 h17, h18;
    unpack_bf16x2(h17, h18, h5);
    u16 h19, h20;
    unpack_bf16x2(h19, h20, h6);
    u16 h21, h22;
    unpack_bf16x2(h21, h22, h7);
    u16 h23, h24;
    unpack_bf16x2(h23, h24, h8);
    const float f3 = cvt_bf16(h9) * 1.442695f;
    const float f4 = cvt_bf16(h10) * 1.442695f;
    const float f5 = cvt_bf16(h11) * 1.442695f;
    const float f6 = cvt_bf16(h12) * 1.442695f;
    const float f7 = cvt_bf16(h13) * 1.442695f;
    const float f8 = cvt_bf16(h14) * 1.442695f;
    const float f9 = cvt_bf16(h15) * 1.442695f;
    const float f10 = cvt_bf16(h16) * 1.442695f;
    const float f11 = cvt_bf16(h17) * 1.442695f;
    const float f12 = cvt_bf16(h18) * 1.442695f;
    const float f13 = cvt_bf16(h19) * 1.442695f;
    const float f14 = cvt_bf16(h20) * 1.442695f;
    const float f15 = cvt_bf16(h21) * 1.442695f;
    const float f16 = cvt_bf16(h22) * 1.442695f;
    const float f17 = cvt_bf16(h23) * 1.442695f;
    const float f18 = cvt_bf16(h24) * 1.442695f;
    // reduce
    const float f19 = fmaxf(fmaxf(fmaxf(f3, f11), fmaxf(f7, f15)), fmaxf(fmaxf(f5, f13), fmaxf(f9, f17)));
    const float f20 = fmaxf(fmaxf(fmaxf(f4, f12), fmaxf(f8, f16)), fmaxf(fmaxf(f6, f14), fmaxf(f10, f18)));
    const float f21 = fmaxf(f19, f20);
    const float f22 = __shfl_xor_sync(0xffffffffu, f21, 1);
    const float f23 = fmaxf(f21, f22);
    const float f24 = __shfl_xor_sync(0xffffffffu, f23, 2);
    const float f25 = fmaxf(f23, f24);
    const float f26 = __shfl_xor_sync(0xffffffffu, f25, 4);
    const float f27 = fmaxf(f25, f26);
    const float f28 = __shfl_xor_sync(0xffffffffu, f27, 8);
    const float f29 = fmaxf(f27, f28);
    const float f30 = __shfl_xor_sync(0xffffffffu, f29, 16);
    __syncthreads();
    st_shared_f32_if(r4, fmaxf(f29, f30), p1);
    __syncthreads();
    const float f31 = ld_shared_f32(smem_base);
    const float f32 = ld_shared_f32(smem_base + 4);
    const float f33 = ld_shared_f32(smem_base + 8);
    const float f34 = ld_shared_f32(smem_base + 12);
    const float f35 = ld_shared_f32(smem_base + 16);
    const float f36 = ld_shared_f32(smem_base + 20);
    const float f37 = ld_shared_f32(smem_base + 24);
    const float f38 = ld_shared_f32(smem_base + 28);
    const float f39 = fmaxf(fmaxf(fmaxf(f31, f35), fmaxf(f33, f37)), fmaxf(fmaxf(f32, f36), fmaxf(f34, f38)));
    const float f40 = fmaxf(f1, f39);
    const float f41 = f1 - f40;
    const float f42 = ex2(f3 - f40) + ex2(f11 - f40) + (ex2(f7 - f40) + ex2(f15 - f40));
    const float f43 = ex2(f4 - f40) + ex2(f12 - f40) + (ex2(f8 - f40) + ex2(f16 - f40));
    const float f44 = ex2(f5 - f40) + ex2(f13 - f40) + (ex2(f9 - f40) + ex2(f17 - f40));
    const float f45 = ex2(f6 - f40) + ex2(f14 - f40) + (ex2(f10 - f40) + ex2(f18 - f40));
    const float f46 = f42 + f44 + (f43 + f45);
    const float f47 = __shfl_xor_sync(0xffffffffu, f46, 1);
    const float f48 = f46 + f47;
    const float f49 = __shfl_xor_sync(0xffffffffu, f48, 2);
    const float f50 = f48 + f49;
    const float f51 = __shfl_xor_sync(0xffffffffu, f50, 4);
    const float f52 = f50 + f51;
    const float f53 = __shfl_xor_sync(0xffffffffu, f52, 8);
    const float f54 = f52 + f53;
    const float f55 = __shfl_xor_sync(0xffffffffu, f54, 16);
    __syncthreads();
    st_shared_f32_if(r4, f54 + f55, p1);
    __syncthreads();
    const float f56 = ld_shared_f32(smem_base);
    const float f57 = ld_shared_f32(smem_base + 4);
    const float f58 = ld_shared_f32(smem_base + 8);
    const float f59 = ld_shared_f32(smem_base + 12);
    const float f60 = ld_shared_f32(smem_base + 16);
    const float f61 = ld_shared_f32(smem_base + 20);
    const float f62 = ld_shared_f32(smem_base + 24);
    const float f63 = ld_shared_f32(smem_base + 28);
    const float f64 = f56 + f60 + (f58 + f62) + (f57 + f61 + (f59 + f63));
    f2 = fmaf(f2, ex2(f41), f64);
    at_1 = at_1 + 8192ull;
    f1 = f40;
  }
  u64 at_2 = at1 + (i64)(int)r2 * 2 + (i64)(int)r3 * 2;
  u64 at_3 = at_2;
  for (int i_1 = (int)r2; i_1 < N; i_1 += 4096) {
    // load x
    const u32 r6 = i_1 + r3;
    const u32 r7 = N - r6;
    u32 h25, h26, h27, h28;
    ld_global_nc_v4_if(h25, h26, h27, h28, at_3, (int)r7 > 0);
    u32 h29, h30, h31, h32;
    ld_global_nc_v4_if(h29, h30, h31, h32, at_3 + 4096, (int)r7 > 2048);
    u16 h33, h34;
    unpack_bf16x2(h33, h34, h25);
    u16 h35, h36;
    unpack_bf16x2(h35, h36, h26);
    u16 h37, h38;
    unpack_bf16x2(h37, h38, h27);
    u16 h39, h40;
    unpack_bf16x2(h39, h40, h28);
    u16 h41, h42;
    unpack_bf16x2(h41, h42, h29);
    u16 h43, h44;
    unpack_bf16x2(h43, h44, h30);
    u16 h45, h46;
    unpack_bf16x2(h45, h46, h31);
    u16 h47, h48;
    unpack_bf16x2(h47, h48, h32);
    // select
    const float f65 = (int)r6 < N ? cvt_bf16(h33) * 1.442695f : __uint_as_float(0xff800000u);
    const float f66 = (int)(r6 + 1u) < N ? cvt_bf16(h34) * 1.442695f : __uint_as_float(0xff800000u);
    const float f67 = (int)(r6 + 2u) < N ? cvt_bf16(h35) * 1.442695f : __uint_as_float(0xff800000u);
    const float f68 = (int)(r6 + 3u) < N ? cvt_bf16(h36) * 1.442695f : __uint_as_float(0xff800000u);
    const float f69 = (int)(r6 + 4u) < N ? cvt_bf16(h37) * 1.442695f : __uint_as_float(0xff800000u);
    const float f70 = (int)(r6 + 5u) < N ? cvt_bf16(h38) * 1.442695f : __uint_as_float(0xff800000u);
    const float f71 = (int)(r6 + 6u) < N ? cvt_bf16(h39) * 1.442695f : __uint_as_float(0xff800000u);
    const float f72 = (int)(r6 + 7u) < N ? cvt_bf16(h40) * 1.442695f : __uint_as_float(0xff800000u);
    const float f73 = (int)(r6 + 2048u) < N ? cvt_bf16(h41) * 1.442695f : __uint_as_float(0xff800000u);
    const float f74 = (int)(r6 + 2049u) < N ? cvt_bf16(h42) * 1.442695f : __uint_as_float(0xff800000u);
    const float f75 = (int)(r6 + 2050u) < N ? cvt_bf16(h43) * 1.442695f : __uint_as_float(0xff800000u);
    const float f76 = (int)(r6 + 2051u) < N ? cvt_bf16(h44) * 1.442695f : __uint_as_float(0xff800000u);
    const float f77 = (int)(r6 + 2052u) < N ? cvt_bf16(h45) * 1.442695f : __uint_as_float(0xff800000u);
    const float f78 = (int)(r6 + 2053u) < N ? cvt_bf16(h46) * 1.442695f : __uint_as_float(0xff800000u);
    const float f79 = (int)(r6 + 2054u) < N ? cvt_bf16(h47) * 1.442695f : __uint_as_float(0xff800000u);
    const float f80 = (int)(r6 + 2055u) < N ? cvt_bf16(h48) * 1.442695f : __uint_as_float(0xff800000u);
    // reduce
    const float f81 = fmaxf(fmaxf(fmaxf(f65, f73), fmaxf(f69, f77)), fmaxf(fmaxf(f67, f75), fmaxf(f71, f79)));
    const float f82 = fmaxf(fmaxf(fmaxf(f66, f74), fmaxf(f70, f78)), fmaxf(fmaxf(f68, f76), fmaxf(f72, f80)));
    const float f83 = fmaxf(f81, f82);
    const float f84 = __shfl_xor_sync(0xffffffffu, f83, 1);
    const float f85 = fmaxf(f83, f84);
    const float f86 = __shfl_xor_sync(0xffffffffu, f85, 2);
    const float f87 = fmaxf(f85, f86);
    const float f88 = __shfl_xor_sync(0xffffffffu, f87, 4);
    const float f89 = fmaxf(f87, f88);
    const float f90 = __shfl_xor_sync(0xffffffffu, f89, 8);
    const float f91 = fmaxf(f89, f90);
    const float f92 = __shfl_xor_sync(0xffffffffu, f91, 16);
    __syncthreads();
    st_shared_f32_if(r4, fmaxf(f91, f92), p1);
    __syncthreads();
    const float f93 = ld_shared_f32(smem_base);
    const float f94 = ld_shared_f32(smem_base + 4);
    const float f95 = ld_shared_f32(smem_base + 8);
    const float f96 = ld_shared_f32(smem_base + 12);
    const float f97 = ld_shared_f32(smem_base + 16);
    const float f98 = ld_shared_f32(smem_base + 20);
    const float f99 = ld_shared_f32(smem_base + 24);
    const float f100 = ld_shared_f32(smem_base + 28);
    const float f101 = fmaxf(fmaxf(fmaxf(f93, f97), fmaxf(f95, f99)), fmaxf(fmaxf(f94, f98), fmaxf(f96, f100)));
    const float f102 = fmaxf(f1, f101);
    const float f103 = f1 - f102;
    const float f104 = ex2(f65 - f102) + ex2(f73 - f102) + (ex2(f69 - f102) + ex2(f77 - f102));
    const float f105 = ex2(f66 - f102) + ex2(f74 - f102) + (ex2(f70 - f102) + ex2(f78 - f102));
    const float f106 = ex2(f67 - f102) + ex2(f75 - f102) + (ex2(f71 - f102) + ex2(f79 - f102));
    const float f107 = ex2(f68 - f102) + ex2(f76 - f102) + (ex2(f72 - f102) + ex2(f80 - f102));
    const float f108 = f104 + f106 + (f105 + f107);
    const float f109 = __shfl_xor_sync(0xffffffffu, f108, 1);
    const float f110 = f108 + f109;
    const float f111 = __shfl_xor_sync(0xffffffffu, f110, 2);
    const float f112 = f110 + f111;
    const float f113 = __shfl_xor_sync(0xffffffffu, f112, 4);
    const float f114 = f112 + f113;
    const float f115 = __shfl_xor_sync(0xffffffffu, f114, 8);
    const float f116 = f114 + f115;
    const float f117 = __shfl_xor_sync(0xffffffffu, f116, 16);
    __syncthreads();
    st_shared_f32_if(r4, f116 + f117, p1);
    __syncthreads();
    const float f118 = ld_shared_f32(smem_base);
    const float f119 = ld_shared_f32(smem_base + 4);
    const float f120 = ld_shared_f32(smem_base + 8);
    const float f121 = ld_shared_f32(smem_base + 12);
    const float f122 = ld_shared_f32(smem_base + 16);
    const float f123 = ld_shared_f32(smem_base + 20);
    const float f124 = ld_shared_f32(smem_base + 24);
    const float f125 = ld_shared_f32(smem_base + 28);
    const float f126 = f118 + f122 + (f120 + f124) + (f119 + f123 + (f121 + f125));
    f2 = fmaf(f2, ex2(f103), f126);
    at_3 = at_3 + 8192ull;
    f1 = f102;
  }
  const float f127 = rcp(f2);
  const u64 at2 = y_at + n1 * (y_stride0 << 1);
  u64 at_4 = at2 + (i64)(int)r3 * 2;
  for (int i_2 = 0; i_2 < (int)r2; i_2 += 4096) {
    // load x
    const u32 r8 = N - (i_2 + r3);
    const bool p2 = (int)r8 > 0;
    u32 h49, h50, h51, h52;
    ld_global_nc_v4_if(h49, h50, h51, h52, at, p2);
    const bool p3 = (int)r8 > 2048;
    u32 h53, h54, h55, h56;
    ld_global_nc_v4_if(h53, h54, h55, h56, at + 4096, p3);
    u16 h57, h58;
    unpack_bf16x2(h57, h58, h49);
    u16 h59, h60;
    unpack_bf16x2(h59, h60, h50);
    u16 h61, h62;
    unpack_bf16x2(h61, h62, h51);
    u16 h63, h64;
    unpack_bf16x2(h63, h64, h52);
    u16 h65, h66;
    unpack_bf16x2(h65, h66, h53);
    u16 h67, h68;
    unpack_bf16x2(h67, h68, h54);
    u16 h69, h70;
    unpack_bf16x2(h69, h70, h55);
    u16 h71, h72;
    unpack_bf16x2(h71, h72, h56);
    const float f128 = cvt_bf16(h57) * 1.442695f - f1;
    const float f129 = cvt_bf16(h58) * 1.442695f - f1;
    const float f130 = cvt_bf16(h59) * 1.442695f - f1;
    const float f131 = cvt_bf16(h60) * 1.442695f - f1;
    const float f132 = cvt_bf16(h61) * 1.442695f - f1;
    const float f133 = cvt_bf16(h62) * 1.442695f - f1;
    const float f134 = cvt_bf16(h63) * 1.442695f - f1;
    const float f135 = cvt_bf16(h64) * 1.442695f - f1;
    const float f136 = cvt_bf16(h65) * 1.442695f - f1;
    const float f137 = cvt_bf16(h66) * 1.442695f - f1;
    const float f138 = cvt_bf16(h67) * 1.442695f - f1;
    const float f139 = cvt_bf16(h68) * 1.442695f - f1;
    const float f140 = cvt_bf16(h69) * 1.442695f - f1;
    const float f141 = cvt_bf16(h70) * 1.442695f - f1;
    const float f142 = cvt_bf16(h71) * 1.442695f - f1;
    const float f143 = cvt_bf16(h72) * 1.442695f - f1;
    // store y
    st_global_v4_if(at_4, cvt_bf16x2(ex2(f129) * f127, ex2(f128) * f127), cvt_bf16x2(ex2(f131) * f127, ex2(f130) * f127), cvt_bf16x2(ex2(f133) * f127, ex2(f132) * f127), cvt_bf16x2(ex2(f135) * f127, ex2(f134) * f127), p2);
    st_global_v4_if(at_4 + 4096, cvt_bf16x2(ex2(f137) * f127, ex2(f136) * f127), cvt_bf16x2(ex2(f139) * f127, ex2(f138) * f127), cvt_bf16x2(ex2(f141) * f127, ex2(f140) * f127), cvt_bf16x2(ex2(f143) * f127, ex2(f142) * f127), p3);
    at = at + 8192ull;
    at_4 = at_4 + 8192ull;
  }
  __syncthreads();
  u64 at_5 = at2 + (i64)(int)r2 * 2 + (i64)(int)r3 * 2;
  for (int i_3 = (int)r2; i_3 < N; i_3 += 4096) {
    // load x
    const u32 r9 = i_3 + r3;
    const u32 r10 = N - r9;
    const bool p4 = (int)r10 > 0;
    u32 h73, h74, h75, h76;
    ld_global_nc_v4_if(h73, h74, h75, h76, at_2, p4);
    const bool p5 = (int)r10 > 2048;
    u32 h77, h78, h79, h80;
    ld_global_nc_v4_if(h77, h78, h79, h80, at_2 + 4096, p5);
    u16 h81, h82;
    unpack_bf16x2(h81, h82, h73);
    u16 h83, h84;
    unpack_bf16x2(h83, h84, h74);
    u16 h85, h86;
    unpack_bf16x2(h85, h86, h75);
    u16 h87, h88;
    unpack_bf16x2(h87, h88, h76);
    u16 h89, h90;
    unpack_bf16x2(h89, h90, h77);
    u16 h91, h92;
    unpack_bf16x2(h91, h92, h78);
    u16 h93, h94;
    unpack_bf16x2(h93, h94, h79);
    u16 h95, h96;
    unpack_bf16x2(h95, h96, h80);
    const float f144 = ((int)r9 < N ? cvt_bf16(h81) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f145 = ((int)(r9 + 1u) < N ? cvt_bf16(h82) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f146 = ((int)(r9 + 2u) < N ? cvt_bf16(h83) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f147 = ((int)(r9 + 3u) < N ? cvt_bf16(h84) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f148 = ((int)(r9 + 4u) < N ? cvt_bf16(h85) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f149 = ((int)(r9 + 5u) < N ? cvt_bf16(h86) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f150 = ((int)(r9 + 6u) < N ? cvt_bf16(h87) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f151 = ((int)(r9 + 7u) < N ? cvt_bf16(h88) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f152 = ((int)(r9 + 2048u) < N ? cvt_bf16(h89) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f153 = ((int)(r9 + 2049u) < N ? cvt_bf16(h90) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f154 = ((int)(r9 + 2050u) < N ? cvt_bf16(h91) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f155 = ((int)(r9 + 2051u) < N ? cvt_bf16(h92) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f156 = ((int)(r9 + 2052u) < N ? cvt_bf16(h93) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f157 = ((int)(r9 + 2053u) < N ? cvt_bf16(h94) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f158 = ((int)(r9 + 2054u) < N ? cvt_bf16(h95) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    const float f159 = ((int)(r9 + 2055u) < N ? cvt_bf16(h96) * 1.442695f : __uint_as_float(0xff800000u)) - f1;
    // store y
    st_global_v4_if(at_5, cvt_bf16x2(ex2(f145) * f127, ex2(f144) * f127), cvt_bf16x2(ex2(f147) * f127, ex2(f146) * f127), cvt_bf16x2(ex2(f149) * f127, ex2(f148) * f127), cvt_bf16x2(ex2(f151) * f127, ex2(f150) * f127), p4);
    st_global_v4_if(at_5 + 4096, cvt_bf16x2(ex2(f153) * f127, ex2(f152) * f127), cvt_bf16x2(ex2(f155) * f127, ex2(f154) * f127), cvt_bf16x2(ex2(f157) * f127, ex2(f156) * f127), cvt_bf16x2(ex2(f159) * f127, ex2(f158) * f127), p5);
    at_2 = at_2 + 8192ull;
    at_5 = at_5 + 8192ull;
  }
}
