extern "C" __global__ void mandelbrot(int *out, int w, int h, double x0, double y0, double step, int most)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h)
        return;
    double cx = fma((double)px, step, x0), cy = fma((double)py, step, y0), x = 0, y = 0;
    int n = 0;
    while (n < most) {
        double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y);
        if (__dadd_rn(xx, yy) > 4)
            break;
        y = __dadd_rn(__dmul_rn(__dmul_rn(2, x), y), cy);
        x = __dadd_rn(__dsub_rn(xx, yy), cx);
        n++;
    }
    out[py * w + px] = n;
}
