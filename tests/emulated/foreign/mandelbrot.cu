// Escape times: neighbours leave the loop at very different steps.
__global__ void mandelbrot(int* iterations, int width, int height, float x0, float y0, float dx, float dy, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = __fadd_rn(x0, __fmul_rn(px, dx)), cy = __fadd_rn(y0, __fmul_rn(py, dy));
    float zx = 0.0f, zy = 0.0f;
    int i = 0;
    while (i < limit) {
        float xx = __fmul_rn(zx, zx), yy = __fmul_rn(zy, zy);
        if (__fadd_rn(xx, yy) > 4.0f) break;
        zy = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, zx), zy), cy);
        zx = __fadd_rn(__fsub_rn(xx, yy), cx);
        i++;
    }
    iterations[py * width + px] = i;
}
