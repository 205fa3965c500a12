// For sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

static __device__ __forceinline__ void ld_global_nc_f32_if(float &r0, u64 at, bool p) {
  asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1]; }" : "=f"(r0) : "l"(at), "r"((u32)p));
}

static __device__ __forceinline__ void ld_global_f32_if(float &r0, u64 at, bool p) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.b32 %0, [%1]; }" : "=f"(r0) : "l"(at), "r"((u32)p) : "memory");
}

static __device__ __forceinline__ void st_global_f32(u64 at, float r0) {
  asm volatile("st.global.b32 [%0], %1;" :  : "l"(at), "f"(r0) : "memory");
}

extern "C" __global__ void __launch_bounds__(256)
saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
  const u64 x_at = (u64)x;
  const u64 y_at = (u64)y;
  const u32 block_x = blockIdx.x;
  const u32 tid = threadIdx.x;
  // this thread's element
  const u32 i = block_x * 256u + tid;
  const bool p1 = (int)i < n;
  float f1;
  ld_global_nc_f32_if(f1, x_at + (i64)(int)i * 4, p1);
  const u64 at = y_at + (i64)(int)i * 4;
  float f2;
  ld_global_f32_if(f2, at, p1);
  // a*x + y
  if (p1) {
    st_global_f32(at, fmaf(a, f1, f2));
  }
}
