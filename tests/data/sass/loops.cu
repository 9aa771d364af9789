// Loops small enough to be counted by hand: tests/unit/analysis/test_main_loop.py does.
extern "C" {

__global__ void dot(const float4 *a, const float4 *b, float *c, int n) {
    float sum = 0;
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 256) {
        float4 x = a[i], y = b[i];
        sum += x.x * y.x;
        sum += x.y * y.y;
        sum += x.z * y.z;
        sum += x.w * y.w;
    }
    c[threadIdx.x] = sum;
}

__global__ void outer(const float4 *a, const float4 *b, float *c, int n) {
    __shared__ float4 as[128], bs[128];
    as[threadIdx.x] = a[threadIdx.x];
    bs[threadIdx.x] = b[threadIdx.x];
    __syncthreads();
    float sum[4][4] = {};
    #pragma unroll 1
    for (int k = 0; k < n; ++k) {
        float4 x = as[threadIdx.x % 16 + k], y = bs[threadIdx.x / 16 + k];
        float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
    }
    for (int i = 0; i < 16; ++i) c[threadIdx.x + 128 * i] = sum[i / 4][i % 4];
}

__global__ void rotate(float *c, float s, int n) {
    float p = c[0], q = c[1], r = c[2];
    #pragma unroll 1
    for (int k = 0; k < n; ++k) {
        float t = p;
        p = p * s + q;
        q = q * s + r;
        r = r * s + t;
    }
    c[0] = p, c[1] = q, c[2] = r;
}

__global__ void neighbours(float *c, int n) {
    __shared__ float s[258];
    float v = c[threadIdx.x];
    #pragma unroll 1
    for (int k = 0; k < n; ++k) {
        s[threadIdx.x + 1] = v;
        __syncthreads();
        v = (s[threadIdx.x] + s[threadIdx.x + 2]) * 0.5f;
        if (v > 8) v *= 0.25f;
        __syncthreads();
    }
    c[threadIdx.x] = v;
}
}
