// Compiled by go test -update to the cubins beside it.
struct Table { float a[30]; };

__device__ __noinline__ float pick(float x) {
	float stack[8];
	for (int i = 0; i < 8; i++) stack[i] = x * i;
	return stack[(int)(x * 3) & 7];
}

extern "C" __global__ void __launch_bounds__(128) shared(float *p, int n, const __grid_constant__ Table t) {
	__shared__ float s[64];
	int i = threadIdx.x;
	s[i] = p[i];
	asm volatile("bar.sync 3, 128;");
	if (i < n) p[i] = s[63 - i] + t.a[i % 30];
}

extern "C" __global__ void stack(float *p) { p[threadIdx.x] = pick(p[threadIdx.x]); }

extern "C" __global__ void __launch_bounds__(1024) spill(float *p) {
	float v[68];
#pragma unroll
	for (int i = 0; i < 68; i++) v[i] = p[threadIdx.x + i * 1024];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < 68; i++) p[threadIdx.x * 3 + i * 1023] = v[i] * v[67 - i] + v[i * 7 % 68];
}
