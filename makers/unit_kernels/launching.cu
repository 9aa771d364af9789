// Whole launches, for makers/unit_costs.py: an empty one, one that looks at its arguments, and one that reads memory.
#include "stamps.cuh"

extern "C" __global__ void nothing() {}

extern "C" __global__ void arguments(float* sink, int turns)
{
    if (turns < 0) *sink = 0.0f;
}

// Reads `fours` times 16 bytes, each once, eight of a thread at a time.
extern "C" __global__ void __launch_bounds__(512) read_far(const float4* from, unsigned fours, float* sink)
{
    constexpr int AT_ONCE = 8;
    const unsigned threads = gridDim.x * blockDim.x;
    float total = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < fours; i += AT_ONCE * threads) {
        float4 few[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            few[j] = i + j * threads < fours ? __ldcs(from + i + j * threads) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) total += few[j].x + few[j].y + few[j].z + few[j].w;
    }
    if (total == -1.0f) *sink = total;
}
