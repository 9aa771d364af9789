// What a GPU reaches at most: fused multiply-adds alone, and a copy through memory alone.

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
