// Constants, parameters, local memory, asynchronous copies, prefetches: code of other forms than the catalog has, for makers/sass_latencies.py.

__constant__ float w[256];
__constant__ int ix[64];
extern "C" __global__ void const_memory(float *p, int n) {
    float s = 0;
    for (int i = 0; i<n; i++) s += w[i]*p[i*32+threadIdx.x]+w[ix[(i+threadIdx.x)&63]];
    p[threadIdx.x] = s;
}

struct S {
    float a[40];
    int n;
    float*p;
};
extern "C" __global__ void struct_param(const S s) {
    float v = 0;
    for (int i = 0; i<s.n; i++) v = v*s.a[(i+threadIdx.x)%40]+s.a[i%40];
    s.p[threadIdx.x] = v;
}

extern "C" __global__ void local_array(int *p, int n) {
    int a[64];
    for (int i = 0; i<64; i++) a[i] = p[i*32+threadIdx.x];
    for (int k = 0; k<n; k++) {
        int j = a[k&63]&63;
        int t = a[j];
        a[j] = a[k&31]+k;
        a[k&31] = t;
    }
    int s = 0;
    for (int i = 0; i<64; i++) s += a[i];
    p[threadIdx.x] = s;
}

extern "C" __global__ void cp_async(const float4 *x, float4 *y, int n) {
    __shared__ float4 s[4][128];
    int t = threadIdx.x;
    for (int k = 0; k<3; k++) {
        unsigned a = __cvta_generic_to_shared(&s[k][t]);
        asm volatile("cp.async.cg.shared.global [%0],[%1],16;"::"r"(a),"l"(x+k*128+t));
        asm volatile("cp.async.commit_group;");
    }
    float4 v = make_float4(0, 0, 0, 0);
    for (int k = 0; k<n; k++) {
        asm volatile("cp.async.wait_group 2;");
        __syncthreads();
        float4 u = s[k&3][t^1];
        v.x += u.x;
        v.y += u.y*u.x;
        v.z += u.z;
        v.w += u.w;
        if (k+3<n) {
            unsigned a = __cvta_generic_to_shared(&s[(k+3)&3][t]);
            asm volatile("cp.async.cg.shared.global [%0],[%1],16;"::"r"(a),"l"(x+(k+3)*128+t));
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_all;");
    y[t] = v;
}

extern "C" __global__ void prefetch(const float *x, float *y, int n) {
    asm volatile("prefetch.global.L2 [%0];"::"l"(x+1024));
    asm volatile("prefetch.global.L1 [%0];"::"l"(x+2048));
    float v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0,[%1];":"=f"(v):"l"(x+threadIdx.x));
    asm volatile("st.global.cs.f32 [%0],%1;"::"l"(y+threadIdx.x),"f"(v*n));
    asm volatile("red.global.add.f32 [%0],%1;"::"l"(y),"f"(v));
    asm volatile("discard.global.L2 [%0],128;"::"l"(y+4096));
}
