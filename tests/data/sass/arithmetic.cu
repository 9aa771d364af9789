// Float, double and integer arithmetic, with the slow paths that the compiler calls.
extern "C" {

__global__ void float_basic(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x[i] = fabsf(y[i]) * 2.5f - x[i] / y[i] + fminf(x[i], -y[i]) + __int_as_float(0x7f800000);
}

__global__ void float_special(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    x[i] = sqrtf(a) + expf(a) + sinf(a) + logf(a) + rsqrtf(a) + rintf(a) + 1.f / a;
}

__global__ void float_fast(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    x[i] = __sinf(a) + __expf(a) + __logf(a) + __fdividef(a, 3.f) + __saturatef(a) + __fmaf_rz(a, a, a) + truncf(a)
        + ceilf(a) + (int)a + (unsigned)a + (float)(long long)a;
}

__global__ void double_all(double *x, const double *y, float *f, long long *l) {
    int i = threadIdx.x;
    x[i] = fma(x[i], y[i], -0.1) / sqrt(fabs(y[i])) + floor(y[i + 1]) + fmin(x[i], y[i + 2]) + (double)l[i] + 1.0 / f[i];
    l[i] = (long long)x[i + 4] + __double2int_rd(x[i + 5]);
    f[i] = (float)x[i + 6];
    if (x[i + 7] > 1e300) x[7] = -1e-310;
}

__global__ void int32_all(int *x, const int *y) {
    int i = threadIdx.x;
    int a = x[i], b = y[i];
    x[i] = a / b + a % b + __brev(a) + __popc(b) + __clz(a) + __byte_perm(a, b, 0x1234) + __funnelshift_l(a, b, 5)
        + __sad(a, b, 3) + abs(a) + min(a, b) + max(a, 7) + (a & b | ~a ^ b) + __dp4a(a, b, a) + ((a >> 4) & 0xff)
        + (short)b + __mulhi(a, b) + (a << (b & 31)) + __ffs(a);
}

__global__ void int64_all(long long *x, const long long *y, unsigned long long *u) {
    int i = threadIdx.x;
    x[i] = x[i] * y[i] + x[i] / y[i] - (y[i] >> 3);
    u[i] = u[i] % 7 + __umul64hi(u[i], u[i + 1]) + __clzll(u[i]) + __popcll(u[i]) + (u[i] << u[3]);
}

__global__ void packed_bytes(unsigned *u) {
    int i = threadIdx.x;
    unsigned a = u[i], b;
    u[i] = __vadd4(a, u[5]) + __vabsdiffu4(a, u[6]) + __vcmpgts2(a, u[7]) + __vminu2(a, u[2]);
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(b) : "r"(a), "r"(u[3]), "r"(u[4]));
    u[i + 1] = b;
    asm("bfi.b32 %0, %1, %1, %2, %3;" : "=r"(b) : "r"(a), "r"(u[3]), "r"(u[4]));
    u[i + 2] = b;
    asm("{.reg .pred p, q, r; setp.lt.u32 p, %1, %2; setp.gt.and.s32 q, %1, 5, p; xor.pred r, p, q; selp.u32 %0, %1, %2, r;}"
        : "=r"(b) : "r"(u[5]), "r"(u[6]));
    u[9] = b;
}

}
