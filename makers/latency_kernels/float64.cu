// Float64 arithmetic, and conversions between types: code of other forms than the catalog has, for makers/sass_latencies.py.

#include <cuda_fp16.h>

extern "C" __global__ void doubles(const double *x, double *y, int n) {
    int i = blockIdx.x*blockDim.x+threadIdx.x;
    double a = x[i], s = 0;
    for (int k = 0; k<n; k++) {
        s = fma(a, s, x[i+k]);
        if (s>a) s -= 1.0;
        s = fmin(s, a*k);
    }
    y[i] = s/a+sqrt(s)+exp(a)+sin(s);
}

extern "C" __global__ void double_gemm(int n, const double *a, const double *b, double *c) {
    __shared__ double A[16][17], B[16][17];
    int r = blockIdx.y*16+threadIdx.y, q = blockIdx.x*16+threadIdx.x;
    double s = 0;
    for (int k = 0; k<n; k += 16) {
        A[threadIdx.y][threadIdx.x] = a[r*n+k+threadIdx.x];
        B[threadIdx.y][threadIdx.x] = b[(k+threadIdx.y)*n+q];
        __syncthreads();
        for (int t = 0; t<16; t++) s += A[threadIdx.y][t]*B[t][threadIdx.x];
        __syncthreads();
    }
    c[r*n+q] = s;
}

extern "C" __global__ void convert(float *p, double *q, long long *r, short *s, signed char *c, __half *h) {
    int i = threadIdx.x;
    float a = p[i];
    q[i] = a+(double) s[i];
    r[i] = (long long) q[i+32]+(long long) a;
    s[i] = (short) a+c[i];
    c[i] = (signed char)(r[i+32]);
    h[i] = __float2half(a)+__double2half(q[i+64])+__short2half_rn(s[i]);
    p[i] = (float) r[i+64]+__half2float(h[i+64])+(float)(unsigned) r[i]+(float) q[i+96];
}
