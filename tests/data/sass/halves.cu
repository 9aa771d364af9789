// Pairs of 16-bit floats, their immediates and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" {

__global__ void half_pairs(half2 *x, const half2 *y) {
    int i = threadIdx.x;
    half2 a = __hfma2(x[i], y[i], __floats2half2_rn(1.5f, -0.25f));
    a = __hmul2(__lowhigh2highlow(a), a);
    a = __hadd2(a, __half2half2(__low2half(y[i])));
    if (__hgt(__low2half(a), __high2half(a))) a = __hneg2(a);
    x[i] = __habs2(a);
    x[i + 1] = __hadd2_sat(a, x[i + 3]);
    x[5] = __hgt2(x[7], x[8]);
    x[11] = __hmul2(x[1], __floats2half2_rn(__int_as_float(0x7f800000), __int_as_float(0xff800000)));
}

__global__ void half_scalars(half *x, const half *y, float *z) {
    int i = threadIdx.x;
    half a = hsqrt(x[i]) + hexp(y[i]);
    if (__hisnan(a)) a = __float2half(2.f);
    x[i] = a + (half)0.3f;
    x[i + 1] = __int2half_rn(i) + __half(__half2int_rz(x[i + 4]));
    z[i] = __half2float(__float2half(z[i]));
}

#if __CUDA_ARCH__ >= 800
__global__ void bfloat_pairs(__nv_bfloat162 *x, const __nv_bfloat162 *y, float *z) {
    int i = threadIdx.x;
    __nv_bfloat162 a = __hmax2(__hfma2(x[i], y[i], y[i]), x[i]);
    x[i] = __hmul2(a, __floats2bfloat162_rn(3.f, -0.1f));
    z[i] = __bfloat162float(__low2bfloat16(a));
}
#endif

}
