// Float32 arithmetic and functions: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x*blockDim.x+threadIdx.x;
    if (i<n) y[i] = a*x[i]+y[i];
}

extern "C" __global__ void nbody(const float4 *p, float3 *a, int n) {
    __shared__ float4 s[256];
    int i = blockIdx.x*256+threadIdx.x;
    float4 me = p[i];
    float3 f = make_float3(0, 0, 0);
    for (int k = 0; k<n; k += 256) {
        s[threadIdx.x] = p[k+threadIdx.x];
        __syncthreads();
        #pragma unroll 16
        for (int j = 0; j<256; j++) {
            float4 o = s[j];
            float x = o.x-me.x, y = o.y-me.y, z = o.z-me.z;
            float r = rsqrtf(x*x+y*y+z*z+1e-6f);
            float w = o.w*r*r*r;
            f.x += x*w;
            f.y += y*w;
            f.z += z*w;
        }
        __syncthreads();
    }
    a[i] = f;
}

extern "C" __global__ void fft(float2 *p) {
    float2 v[8];
    int t = threadIdx.x;
    for (int i = 0; i<8; i++) v[i] = p[t+i*64];
    for (int s = 1; s<8; s *= 2) for (int i = 0; i<8; i++) if (!(i&s)) {
        float2 a = v[i], b = v[i|s];
        float c, d;
        sincosf(3.14159f*t*i/s, &d, &c);
        v[i] = make_float2(a.x+b.x, a.y+b.y);
        float x = a.x-b.x, y = a.y-b.y;
        v[i|s] = make_float2(x*c-y*d, x*d+y*c);
    }
    for (int i = 0; i<8; i++) p[t+i*64] = v[i];
}

extern "C" __global__ void mandel(unsigned char *o, int w, int h, int it) {
    int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
    if (x<w && y<h) {
        float a = 0, b = 0, c = x*3.f/w-2, d = y*2.f/h-1;
        int k;
        for (k = 0; k<it && a*a+b*b<4; k++) {
            float t = a*a-b*b+c;
            b = 2*a*b+d;
            a = t;
        }
        o[y*w+x] = k;
    }
}

extern "C" __global__ __launch_bounds__(256) void sgemm_tile(int n, const float *a, const float *b, float *c) {
    __shared__ float A[8][128], B[8][128];
    float s[8][8] = {};
    int t = threadIdx.x;
    for (int k = 0; k<n; k += 8) {
        float4 u = *(const float4*)&a[(blockIdx.y*128+t/2)*n+k+t%2*4];
        float4 v = *(const float4*)&b[(k+t/32)*n+blockIdx.x*128+t%32*4];
        A[t%2*4][t/2] = u.x;
        A[t%2*4+1][t/2] = u.y;
        A[t%2*4+2][t/2] = u.z;
        A[t%2*4+3][t/2] = u.w;
        *(float4*)&B[t/32][t%32*4] = v;
        __syncthreads();
        #pragma unroll
        for (int q = 0; q<8; q++) {
            float x[8], y[8];
            for (int i = 0; i<8; i++) {
                x[i] = A[q][t/16*8+i];
                y[i] = B[q][t%16*8+i];
            }
            #pragma unroll
            for (int i = 0; i<8; i++)
            #pragma unroll
            for (int j = 0; j<8; j++) s[i][j] += x[i]*y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i<8; i++) for (int j = 0; j<8; j++) c[(blockIdx.y*128+t/16*8+i)*n+blockIdx.x*128+t%16*8+j] = s[i][j];
}

extern "C" __global__ void stencil3d(const float *__restrict__ x, float *__restrict__ y, int nx, int ny, int nz,
    float a,float b) {
    int i = blockIdx.x*blockDim.x+threadIdx.x+1, j = blockIdx.y*blockDim.y+threadIdx.y+1;
    if (i >= nx-1 || j >= ny-1) return;
    const float*q = x+j*nx+i;
    float lo = q[0], c = q[nx*ny];
    for (int k = 1; k<nz-1; k++) {
        float hi = q[(k+1)*nx*ny];
        const float*r = q+k*nx*ny;
        y[k*nx*ny+j*nx+i] = a*c+b*(lo+hi+r[1]+r[-1]+r[nx]+r[-nx]);
        lo = c;
        c = hi;
    }
}

extern "C" __global__ void math(float *p) {
    float a = p[threadIdx.x];
    a = sinf(a)+cosf(a)*tanf(a);
    a += powf(a, 1.7f)+expf(a)+log2f(a)+atan2f(a, 2.f)+erff(a)+rsqrtf(a)+fmodf(a,
        3.f)+floorf(a)+rintf(a)+__fdividef(a, 3.f)+lgammaf(a)+j0f(a);
    p[threadIdx.x] = a+(int) a+(long long) a+__float2uint_rd(a)+(unsigned char) a;
}

extern "C" __global__ __launch_bounds__(1024, 2) void spill(const float *x, float *y, int n) {
    float a[48];
    #pragma unroll
    for (int i = 0; i<48; i++) a[i] = x[i*1024+threadIdx.x];
    for (int k = 0; k<n; k++) {
        #pragma unroll
        for (int i = 0; i<48; i++) a[i] = a[i]*a[(i*7+3)%48]+a[(i+1)%48];
    }
    #pragma unroll
    for (int i = 0; i<48; i++) y[i*1024+threadIdx.x] = a[i];
}
