// Latencies of single loads: a load behind others, and loads beside the traffic of other warps, for makers/unit_costs.py.
#include "stamps.cuh"

__device__ __forceinline__ void use(unsigned shared, float v) { asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(shared), "f"(v) : "memory"); }

__device__ __forceinline__ float load(const float* p)
{
    float v;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}

// Wait, so that what was loaded before is in L1 and no request is under way.
__device__ __forceinline__ void settle(unsigned cycles)
{
    const unsigned long long start = clock_now();
    while (clock_now() - start < cycles) {}
}

// In each of `times` rounds a warp loads from MISSES places of `p`, then one word of `q`, or of shared memory. found[3 * round]: cycles until
// the last value is there, until all are, and from before the first load to behind the last one. `hot` has bit 0 if `p` is to be in L1
// before, bit 1 for `q`. Both go on by their steps (in words) each round.
template <int MISSES, int FROM_SHARED>
__global__ void __launch_bounds__(32) behind(unsigned* found, const float* p, unsigned p_step, const float* q, unsigned q_step, int times, int hot, int lanes)
{
    __shared__ float words[64];
    const unsigned at = word_address(words) + 4 * threadIdx.x, lane = lanes > 1 ? threadIdx.x : 0;
    words[threadIdx.x] = words[threadIdx.x + 32] = 1;
    p += lane, q += lane;
    for (int round = 0; round < times; ++round) {
        if (hot & 1)
            for (int i = 0; i < MISSES; ++i) use(at + 128, load(p + i * 1024));
        if (hot & 2) use(at + 128, load(q));
        settle(2000);
        float first[MISSES], last;
        const unsigned long long before = clock_now();
#pragma unroll
        for (int i = 0; i < MISSES; ++i) first[i] = load(p + i * 1024);
        if (FROM_SHARED) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(last) : "r"(at) : "memory");
        else last = load(q);
        const unsigned long long issued = clock_now();
        use(at + 128, last);
        const unsigned long long there = clock_now();
#pragma unroll
        for (int i = 0; i < MISSES; ++i) use(at + 128, first[i]);
        const unsigned long long all = clock_now();
        if (threadIdx.x == 0) {
            found[3 * round] = there - before;
            found[3 * round + 1] = all - before;
            found[3 * round + 2] = issued - before;
        }
        p += p_step, q += q_step;
    }
}

// The same with two warps: warp 0 loads from `p`, `later` cycles after that the last warp of the block loads from `q` and measures. The others wait.
extern "C" __global__ void __launch_bounds__(256) beside(unsigned* found, const float* p, unsigned p_step, const float* q, unsigned q_step, int times, int hot, int later)
{
    __shared__ float words[512];
    const unsigned at = word_address(words) + 4 * threadIdx.x, warp = threadIdx.x / 32, last = blockDim.x / 32 - 1;
    p += threadIdx.x % 32, q += threadIdx.x % 32;
    for (int round = 0; round < times; ++round) {
        if (hot & 1 && warp == 0) use(at, load(p));
        if (hot & 2 && warp == last) use(at, load(q));
        if (warp == last) settle(2000);
        __syncthreads();
        if (warp == 0) {
            const unsigned long long before = clock_now();
            use(at, load(p));
            if (threadIdx.x == 0) found[3 * round + 1] = clock_now() - before;
        } else if (warp == last) {
            settle(later);
            const unsigned long long before = clock_now();
            use(at, load(q));
            if (threadIdx.x % 32 == 0) {
                found[3 * round] = clock_now() - before;
                found[3 * round + 2] = 0;
            }
        }
        __syncthreads();
        p += p_step, q += q_step;
    }
}

// The first warp of each of the first `chasers` blocks loads `probes` words, one after the other, `step` words apart; found has the cycles of
// each. All other warps load 16 bytes a lane, DEPTH times at once, from `load`, of which they take `mask` + 1 words, and wait `idle` cycles;
// they end when all chasers have ended, or after `turns`. loaded[warp] is how often they did.
template <int DEPTH>
__global__ void __launch_bounds__(1024) loaded_latency(
    unsigned long long* when, unsigned* found, const float* probe, int probes, unsigned step, const float* from, unsigned mask, int turns, int idle,
    int chasers, int* done, unsigned* loaded, float* sink)
{
    __shared__ float words[1024];
    const unsigned at = word_address(words) + 4 * threadIdx.x, warps = blockDim.x / 32, warp = blockIdx.x * warps + threadIdx.x / 32;
    stamp_start(when);
    if (threadIdx.x < 32 && blockIdx.x < chasers) {
        settle(20000);
        for (int i = 0; i < probes; ++i) {
            const float* p = probe + static_cast<unsigned long long>(i * 2654435761u % probes) * step;
            const unsigned long long before = clock_now();
            use(at, load(p));
            if (threadIdx.x == 0) found[blockIdx.x * probes + i] = clock_now() - before;
        }
        if (threadIdx.x == 0) atomicAdd(done, 1);
    } else if (threadIdx.x >= 32) {
        unsigned place = warp * 128 * DEPTH & mask, count = 0;
        float total = 0;
        for (; count < turns; ++count) {
            float4 v[DEPTH];
#pragma unroll
            for (int i = 0; i < DEPTH; ++i) v[i] = __ldcg(reinterpret_cast<const float4*>(from + (place + 128 * i & mask)) + threadIdx.x % 32);
#pragma unroll
            for (int i = 0; i < DEPTH; ++i) total += v[i].x + v[i].y + v[i].z + v[i].w;
            place = place + gridDim.x * warps * 128 * DEPTH & mask;
            if (idle) settle(idle);
            if (count % 8 == 7 && *static_cast<volatile int*>(done) >= chasers) break;
        }
        if (threadIdx.x % 32 == 0) loaded[warp] = count;
        if (total == -1.0f) *sink = total;
    }
    stamp_end(when);
}

// Read `words` words, so that L2 holds them.
extern "C" __global__ void touch(const float* p, unsigned words, float* sink)
{
    float total = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) total += __ldcg(p + i);
    if (total == -1.0f) *sink = total;
}
