// Branches, switches, calls, loops within loops.
__noinline__ __device__ float halved(float a, float *p) {
    return a > 3 ? halved(a * .5f, p) + p[0] : a * p[1];
}

__noinline__ __device__ float less(float a, float *p) { return a - p[2]; }

typedef float (*Function)(float, float *);
__device__ Function table[2] = {halved, less};
__constant__ float weights[64];

struct Base {
    virtual __device__ int f(int a) { return a + 1; }
};

struct Derived : Base {
    int k;
    __device__ int f(int a) override { return a * k; }
};

extern "C" {

__global__ void switches(int *x) {
    int i = threadIdx.x, v = x[i];
    switch (v) {
        case 0: v = x[i + 1] * 3; break;
        case 1: v += 77 / (x[i + 2] | 1); break;
        case 2: x[i + 5] = 1; v = x[v]; break;
        case 3: atomicAdd(x, v); break;
        case 4: v = __popc(v) + x[3]; break;
        case 5: v = v * v * v + x[7]; break;
        case 6: __syncwarp(); v = x[9] % 3; break;
        case 7: v = sqrtf(v); break;
        case 8: v = x[v + 2] * 7; break;
    }
    x[i] = v;
}

__global__ void calls(float *f) { f[threadIdx.x] = halved(f[threadIdx.x], f + 3); }

__global__ void pointer_call(float *f, int k) { f[threadIdx.x] = table[k](f[threadIdx.x], f + 3); }

__global__ void virtual_call(int *x) {
    Derived d;
    Base b;
    d.k = x[1];
    Base *p = x[0] ? &d : &b;
    x[2] = p->f(x[3]);
}

__global__ void local_array(float *f, int n) {
    float a[9];
    for (int i = 0; i < 9; i++) a[i] = f[i] * weights[i];
    int k = threadIdx.x;
    for (int i = 0; i < n; i++) a[(k + i) % 9] += a[i % 9] * weights[k];
    f[k] = a[n] + a[k];
}

// An outer loop that scales 32 results a turn around an inner one of 8 FMAs: the work is in the inner one.
__global__ void nested(const float *a, float *c, int tiles, int depth) {
    float sum[8];
    for (int tile = 0; tile < tiles; tile++) {
        #pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = 0;
        #pragma unroll 1
        for (int k = 0; k < depth; k++) {
            float x = a[k * 32 + threadIdx.x];
            #pragma unroll
            for (int i = 0; i < 8; i++) sum[i] = fmaf(x, weights[i], sum[i]);
        }
        #pragma unroll
        for (int i = 0; i < 32; i++) c[tile * 32 + i] = fmaf(sum[i % 8], weights[i], c[tile * 32 + i]);
    }
}

// Rows of shared memory multiplied as in a tiled GEMM, 8 x 4 results a thread, read 128 bits at a time.
__global__ void tiled(const float4 *a, const float4 *b, float *c, int steps) {
    __shared__ float4 as[4][2][16], bs[4][16];
    float sum[8][4] = {};
    for (int step = 0; step < steps; step++) {
        as[threadIdx.y][0][threadIdx.x] = a[step * 128 + threadIdx.y * 16 + threadIdx.x];
        as[threadIdx.y][1][threadIdx.x] = a[step * 128 + threadIdx.y * 16 + threadIdx.x + 64];
        bs[threadIdx.y][threadIdx.x] = b[step * 64 + threadIdx.y * 16 + threadIdx.x];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            float4 low = as[k][0][threadIdx.y], high = as[k][1][threadIdx.y], right = bs[k][threadIdx.x];
            float left[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            #pragma unroll
            for (int i = 0; i < 8; i++) {
                sum[i][0] = fmaf(left[i], right.x, sum[i][0]);
                sum[i][1] = fmaf(left[i], right.y, sum[i][1]);
                sum[i][2] = fmaf(left[i], right.z, sum[i][2]);
                sum[i][3] = fmaf(left[i], right.w, sum[i][3]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        ((float4 *)c)[(threadIdx.y * 8 + i) * 16 + threadIdx.x] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

}
