// For sm_75.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ void ld_global_nc_f32_if(float &r0, u64 at, bool p) {
  asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1]; }" : "=f"(r0) : "l"(at), "r"((u32)p));
}

static __device__ __forceinline__ void st_shared_f32(u32 at, float r0) {
  asm volatile("st.shared.b32 [%0], %1;" :  : "r"(at), "f"(r0) : "memory");
}

static __device__ __forceinline__ void ld_shared_f32_if(float &r0, u32 at, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.shared.b32 %0, [%1]; }" : "=f"(r0) : "r"(at), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ void st_global_f32(u64 at, float r0) {
  asm volatile("st.global.b32 [%0], %1;" :  : "l"(at), "f"(r0) : "memory");
}

// 4224 bytes of shared memory.
extern "C" __global__ void __launch_bounds__(256)
transpose(const float *__restrict__ in, float *__restrict__ out, int rows, int cols) {
  __shared__ __align__(16) u8 smem[4224];
  const u64 in_at = (u64)in;
  const u64 out_at = (u64)out;
  const u32 tid = threadIdx.x;
  const u32 block_y = blockIdx.y;
  const u32 block_x = blockIdx.x;
  const u32 smem_base = (u32)__cvta_generic_to_shared(smem);
  const u32 tx = tid & 31u;
  const u32 ty = tid >> 5;
  // read rows
  const u32 r1 = block_y << 5;
  const u32 r2 = r1 + ty;
  const u32 r3 = block_x << 5;
  const u32 r4 = r3 + tx;
  const bool p1 = (int)r4 < cols;
  const bool p2 = (int)r2 < rows && p1;
  float f1;
  ld_global_nc_f32_if(f1, in_at + (i64)(int)(r2 * (u32)cols + r4) * 4, p2);
  const u32 r5 = smem_base + ((ty * 33u + tx) << 2);
  if (p2) {
    st_shared_f32(r5, f1);
  }
  const u32 r6 = r2 + 8u;
  const bool p3 = (int)r6 < rows && p1;
  float f2;
  ld_global_nc_f32_if(f2, in_at + (i64)(int)(r6 * (u32)cols + r4) * 4, p3);
  if (p3) {
    st_shared_f32(r5 + 1056, f2);
  }
  const u32 r7 = r2 + 16u;
  const bool p4 = (int)r7 < rows && p1;
  float f3;
  ld_global_nc_f32_if(f3, in_at + (i64)(int)(r7 * (u32)cols + r4) * 4, p4);
  if (p4) {
    st_shared_f32(r5 + 2112, f3);
  }
  const u32 r8 = r2 + 24u;
  const bool p5 = (int)r8 < rows && p1;
  float f4;
  ld_global_nc_f32_if(f4, in_at + (i64)(int)(r8 * (u32)cols + r4) * 4, p5);
  if (p5) {
    st_shared_f32(r5 + 3168, f4);
  }
  __syncthreads();
  // write columns
  const u32 r9 = r3 + ty;
  const u32 r10 = r1 + tx;
  const bool p6 = (int)r10 < rows;
  const bool p7 = (int)r9 < cols && p6;
  const u32 r11 = smem_base + ((tx * 33u + ty) << 2);
  float f5;
  ld_shared_f32_if(f5, r11, p7);
  if (p7) {
    st_global_f32(out_at + (i64)(int)(r9 * (u32)rows + r10) * 4, f5);
  }
  const u32 r12 = r9 + 8u;
  const bool p8 = (int)r12 < cols && p6;
  float f6;
  ld_shared_f32_if(f6, r11 + 32, p8);
  if (p8) {
    st_global_f32(out_at + (i64)(int)(r12 * (u32)rows + r10) * 4, f6);
  }
  const u32 r13 = r9 + 16u;
  const bool p9 = (int)r13 < cols && p6;
  float f7;
  ld_shared_f32_if(f7, r11 + 64, p9);
  if (p9) {
    st_global_f32(out_at + (i64)(int)(r13 * (u32)rows + r10) * 4, f7);
  }
  const u32 r14 = r9 + 24u;
  const bool p10 = (int)r14 < cols && p6;
  float f8;
  ld_shared_f32_if(f8, r11 + 96, p10);
  if (p10) {
    st_global_f32(out_at + (i64)(int)(r14 * (u32)rows + r10) * 4, f8);
  }
}
