// What a GPU reaches at most: fused multiply-adds alone, a copy through memory alone, reading memory alone.

constexpr int CHAINS = 16;  // independent accumulators a thread: more than the FMA latency needs
constexpr int UNROLL = 8;

// rounds * UNROLL * CHAINS fused multiply-adds a thread. a and b are arguments, so that nothing can be folded.
extern "C" __global__ void ffma_peak(float *out, int rounds, float a, float b) {
    float chain[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) chain[i] = threadIdx.x + i;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int repeat = 0; repeat < UNROLL; ++repeat)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) chain[i] = fmaf(chain[i], a, b);
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += chain[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// quads float4 values from one buffer to another, four in flight a thread.
extern "C" __global__ void copy_peak(float4 *__restrict__ to, const float4 *__restrict__ from, long long quads) {
    const long long step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < quads; i += 4 * step) {
        const float4 one = from[i], two = from[i + step], three = from[i + 2 * step], four = from[i + 3 * step];
        to[i] = one;
        to[i + step] = two;
        to[i + 2 * step] = three;
        to[i + 3 * step] = four;
    }
    for (; i < quads; i += step) to[i] = from[i];
}

// quads float4 values, eight in flight a thread. The sum keeps the compiler from dropping the loads; it is never -1.
extern "C" __global__ void __launch_bounds__(512, 1) read_peak(const float4 *__restrict__ from, long long quads,
                                                               float *__restrict__ out) {
    constexpr int AT_ONCE = 8;
    const long long step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (; i + (AT_ONCE - 1) * step < quads; i += AT_ONCE * step) {
        float4 held[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) held[j] = __ldg(from + i + j * step);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) sum += fabsf(held[j].x) + fabsf(held[j].y) + fabsf(held[j].z) + fabsf(held[j].w);
    }
    for (; i < quads; i += step) sum += fabsf(from[i].x) + fabsf(from[i].y) + fabsf(from[i].z) + fabsf(from[i].w);
    if (sum == -1.0f) out[threadIdx.x] = sum;
}
