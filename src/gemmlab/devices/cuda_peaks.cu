// What a GPU reaches at most: fused multiply-adds alone, mma.sync alone, a copy through memory alone, reading memory alone.

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

#if __CUDA_ARCH__ >= 800
constexpr int TILES = 16;  // independent 16 x 8 sums a warp, in 64 registers of a thread

// rounds * UNROLL * TILES products of 16 x 8 by 8 x 8 a warp, TF32 inputs of many values and signs, from registers.
extern "C" __global__ void mma_tf32_peak(float *out, int rounds) {
    float sums[TILES][4] = {};
    unsigned a[4], b[2], hash = threadIdx.x + 1;
    const auto next = [&hash] { return ((hash = hash * 1664525u + 1013904223u) & 0x807fe000u) | 0x3f000000u; };
    for (unsigned &word : a) word = next();
    for (unsigned &word : b) word = next();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < UNROLL * TILES; ++i)
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                         "{%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sums[i % TILES][0]), "+f"(sums[i % TILES][1]), "+f"(sums[i % TILES][2]), "+f"(sums[i % TILES][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    float sum = 0;
    for (const auto &tile : sums) sum += tile[0] + tile[1] + tile[2] + tile[3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
#endif

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
