// Tensor cores through mma.sync and WMMA: code of other forms than the catalog has, for makers/sass_latencies.py.

#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void mma_f16(const unsigned *a, const unsigned *b, float *c, int n) {
    int t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k<n; k++) {
        unsigned A[4], B[2];
        for (int i = 0; i<4; i++) A[i] = a[(k*4+i)*32+t];
        for (int i = 0; i<2; i++) B[i] = b[(k*2+i)*32+t];
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};":"+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]):"r"(A[0]),"r"(A[1]),"r"(A[2]),"r"(A[3]),"r"(B[0]),"r"(B[1]));
    }
    for (int i = 0; i<4; i++) c[i*32+t] = d[i];
}

extern "C" __global__ void mma_ldmatrix(const uint4 *a, float *c, int n) {
    __shared__ uint4 s[256];
    int t = threadIdx.x;
    float d[8] = {};
    for (int k = 0; k<n; k++) {
        s[t] = a[k*32+t];
        s[t+32] = a[k*32+t+32];
        __syncthreads();
        unsigned A[4], B[4];
        unsigned p = __cvta_generic_to_shared(&s[t]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];":"=r"(A[0]),"=r"(A[1]),
            "=r"(A[2]),"=r"(A[3]):"r"(p));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];":"=r"(B[0]),"=r"(B[1]),
            "=r"(B[2]),"=r"(B[3]):"r"(p+512));
        for(int j=0;j<2;j++)asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};":"+f"(d[4*j]),"+f"(d[4*j+1]),"+f"(d[4*j+2]),"+f"(d[4*j+3]):"r"(A[0]),"r"(A[1]),"r"(A[2]),"r"(A[3]),"r"(B[2*j]),"r"(B[2*j+1]));
        __syncthreads();
    }
    for (int i = 0; i<8; i++) c[i*32+t] = d[i];
}

extern "C" __global__ void mma_misc(const unsigned *a, int *c, float *f, double *g, int n) {
    int t = threadIdx.x;
    int d[4] = {};
    float e[4] = {};
    unsigned h[2] = {};
    double D0 = g[t], D1 = g[t+32];
    for (int k = 0; k<n; k++) {
        unsigned A[4];
        for (int i = 0; i<4; i++) A[i] = a[(k*4+i)*32+t];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};":"+r"(d[0]),"+r"(d[1]),"+r"(d[2]),"+r"(d[3]):"r"(A[0]),"r"(A[1]),"r"(A[2]),"r"(A[3]),"r"(A[1]),"r"(A[2]));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};":"+f"(e[0]),"+f"(e[1]),"+f"(e[2]),"+f"(e[3]):"r"(A[0]),"r"(A[1]),"r"(A[2]),"r"(A[3]),"r"(A[1]),"r"(A[2]));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%0,%1};":
            "+r"(h[0]),"+r"(h[1]):"r"(A[0]),"r"(A[1]),"r"(A[3]));
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};":"+d"(D0),
            "+d"(D1):"d"((double)A[0]),"d"((double)A[1]));
    }
    for (int i = 0; i<4; i++) {
        c[i*32+t] = d[i]+h[i&1];
        f[i*32+t] = e[i];
    }
    g[t] = D0+D1;
}

extern "C" __global__ void wmmak(const __half *a, const __half *b, float *c, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>A;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>B;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float>C;
    wmma::fill_fragment(C, 0.f);
    for (int k = 0; k<n; k += 16) {
        wmma::load_matrix_sync(A, a+k, n);
        wmma::load_matrix_sync(B, b+k, n);
        wmma::mma_sync(C, A, B, C);
    }
    wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
