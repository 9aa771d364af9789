// Every width and space of memory, cache hints, atomics, textures and surfaces, parameters of all sizes.
extern "C" {

struct Record {
    float a[8];
    int k;
    short h;
    signed char c;
    double d;
};

__global__ void parameters(Record p, float *o, int i) {
    o[i] = p.a[i] + p.k + p.h + p.c + p.d;
    ((char *)o)[i + 99] = p.c;
    ((short *)o)[i] = p.h;
}

__global__ void widths(float4 *a, const double2 *b, uchar4 *c, short2 *s, int i) {
    a[i] = a[i + 1];
    ((double2 *)a)[i + 9] = b[i];
    c[i] = c[i + 2];
    s[i] = s[i + 3];
    a[i + 4] = __ldg(a + i + 20);
}

__global__ void hints(const float *__restrict__ a, float *o, int i) {
    o[i] = __ldg(a + i) + __ldcg(a + i + 1) + __ldcs(a + i + 2) + __ldcv(a + i + 3);
    __stcs(o + i + 1, 3.f);
    volatile float *v = o;
    v[7] = v[8];
    float z;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
    asm volatile("ld.acquire.gpu.global.f32 %0, [%1];" : "=f"(z) : "l"(a));
    asm volatile("st.release.sys.global.f32 [%1], %0;" ::"f"(z), "l"(o));
#if __CUDA_ARCH__ >= 800
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(z) : "l"(a), "l"(policy));
    o[3] = z;
#endif
}

__global__ void atomics(int *x, float *f, double *d, unsigned long long *u) {
    __shared__ int s[64];
    __shared__ float total;
    int i = threadIdx.x;
    s[i] = 0;
    total = 0;
    __syncthreads();
    atomicAdd(&s[x[i] & 63], 1);
    atomicAdd(&total, f[i]);
    x[i] = atomicCAS(&s[2], 3, i) + atomicMax(&x[4], i);
    atomicAdd(f, 1.f);
    atomicAdd(d, 1.0);
    u[1] = atomicAdd(u, 5ull) + atomicCAS(u + 4, 3ull, 7ull);
    atomicInc((unsigned *)x + 9, 77);
    atomicMin(&s[4], i);
    f[9] = atomicAdd(f + 3, 2.f);
    __syncthreads();
    x[i + 64] = s[i];
    __threadfence();
    f[i] = atomicExch(&total, 1.f);
}

__global__ void generic(float *g, int n) {
    __shared__ float s[32];
    float l[4] = {1, 2, 3, 4};
    float *p = n > 3 ? s : (n > 2 ? g : l);
    p[n & 3] = 4;
    s[3] = l[n & 3];
    __syncthreads();
    atomicAdd(p + 1, 1.f);
    g[0] = p[2] + s[n];
    g[3] = __isShared(p);
}

__global__ void textures(cudaTextureObject_t t, cudaTextureObject_t u, cudaSurfaceObject_t o, float *f) {
    int i = threadIdx.x, v;
    f[i] = tex1Dfetch<float>(t, i) + tex2D<float>(u, i * .5f, f[i]) + tex3D<float4>(u, f[1], f[2], f[3]).w
        + tex2DLayered<float>(u, f[1], f[2], 3) + texCubemap<float>(u, f[1], f[2], f[3])
        + tex2Dgather<float4>(u, f[1], f[2], 1).y
        + tex2DGrad<float>(u, f[1], f[2], make_float2(1, 2), make_float2(f[5], f[6]));
    surf2Dread(&v, o, i * 4, 3);
    surf2Dwrite(v + 1, o, i * 4, 5);
}

}
