// 1D convolution: coefficients in constant memory, the signal with its halo in shared memory.
#define RADIUS 8
#define BLOCK 128

__constant__ float coefficients[2 * RADIUS + 1] = {
    -0.0012f, -0.0041f, -0.0073f, -0.0027f, 0.0202f, 0.0664f, 0.1271f, 0.1793f, 0.1998f,
    0.1793f, 0.1271f, 0.0664f, 0.0202f, -0.0027f, -0.0073f, -0.0041f, -0.0012f};

extern "C" __global__ void convolve(const float* in, float* out, int n) {
    __shared__ float s[BLOCK + 2 * RADIUS];
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    const int at = threadIdx.x + RADIUS;
    s[at] = i < n ? in[i] : 0.0f;
    if (threadIdx.x < RADIUS) {
        s[at - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0.0f;
        s[at + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0.0f;
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; k++) sum += s[at + k] * coefficients[k + RADIUS];
    out[i] = sum;
}
