// Half precision and bfloat16: code of other forms than the catalog has, for makers/sass_latencies.py.

#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void half_math(const __half2 *x, __half2 *y, int n) {
    int i = threadIdx.x;
    __half2 a = x[i], s = __float2half2_rn(0.f);
    for (int k = 0; k<n; k++) {
        s = __hfma2(a, x[i+k], s);
        s = __hmax2(s, a);
    }
    y[i] = __hadd2(h2exp(s), h2rcp(a));
    if (__hgt(__low2half(s), __low2half(a))) y[i+n] = __hmul2(s, a);
    y[i+2*n] = __h2div(a, s);
}

extern "C" __global__ void bf16_math(const __nv_bfloat162 *x, __nv_bfloat162 *y, float *z, int n) {
    int i = threadIdx.x;
    __nv_bfloat162 a = x[i], s = a;
    for (int k = 0; k<n; k++) s = __hfma2(a, x[i+k], s);
    y[i] = s;
    float2 f = __bfloat1622float2(s);
    z[i] = f.x*f.y;
    y[i+n] = __floats2bfloat162_rn(f.x+1, f.y);
}
