// Loops of FFMAs beside loads from shared memory, loads and asynchronous copies from global memory, for makers/unit_costs.py.
#include "stamps.cuh"

extern __shared__ float4 shared_words[];

template <int WORDS>
__device__ __forceinline__ void load_shared(float (&v)[4], unsigned from)
{
    if (WORDS == 4) asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(from));
    if (WORDS == 2) asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(from));
    if (WORDS == 1) asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(v[0]) : "r"(from));
}

template <int WORDS>
__device__ __forceinline__ void load_global(float (&v)[4], const float* from)
{
    if (WORDS == 4) asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"(from));
    if (WORDS == 2) asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "l"(from));
    if (WORDS == 1) asm volatile("ld.global.f32 %0, [%1];" : "=f"(v[0]) : "l"(from));
}

template <int WORDS>
__device__ __forceinline__ void store_shared(unsigned to, float v)
{
    if (WORDS == 4) asm volatile("st.volatile.shared.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(to), "f"(v));
    if (WORDS == 2) asm volatile("st.volatile.shared.v2.f32 [%0], {%1, %1};" ::"r"(to), "f"(v));
    if (WORDS == 1) asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(to), "f"(v));
}

template <int WORDS, bool BYPASS>
__device__ __forceinline__ void copy(unsigned to, const float* from)
{
    if (BYPASS) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(4 * WORDS));
}

// A turn has 16 slots. Slot s has FMAS / 16 FFMAs, and one of the LOADS, STORES, GLOBALS and COPIES in so many of the slots, evenly.
// Lane l takes words from LSTEP * (l % LMOD / LDIV) on (loads), SSTEP * l (stores), GSTEP * l (global loads), CFROM * l and to CTO * l (copies): 0 is a
// broadcast. Global addresses go on by `pace` words a turn, and begin anew after `mask` + 1 words: few stay in L1, many do not.
template <int FMAS, int LOADS, int LW, int LSTEP, int STORES, int SW, int SSTEP, int GLOBALS, int GW, int GSTEP, int COPIES, int CW, int CFROM, int CTO, int BYPASS, int LMOD, int LDIV>
__global__ void __launch_bounds__(512) mix(unsigned long long* when, const float* data, float* sink, int turns, unsigned pace, unsigned mask)
{
    constexpr int SLOTS = 16;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned base = word_address(shared_words);
    for (unsigned i = threadIdx.x; i < 2048; i += blockDim.x) shared_words[i] = make_float4(1e-9f, 1e-9f, 1e-9f, 1e-9f);
    float sums[SLOTS], held[LOADS ? LOADS : 1][4] = {}, far[GLOBALS ? GLOBALS : 1][4] = {};
#pragma unroll
    for (int i = 0; i < SLOTS; ++i) sums[i] = threadIdx.x;
    const float x = data[lane], y = data[lane + 32];
    const unsigned load_at = base + 4 * LSTEP * (lane % LMOD / LDIV), store_at = base + 4 * SSTEP * lane;
    unsigned copy_at = base + 16384 + 4 * CTO * lane;
    unsigned place = (blockIdx.x * warps + warp) * (GLOBALS * 32 * (GSTEP ? GSTEP : 1) + COPIES * 32 * CFROM) & mask;
    __syncthreads();
    stamp_start(when);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        const float* near = data + place + GSTEP * lane;
        const float* source = data + place + GLOBALS * 32 * GSTEP + CFROM * lane;
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            constexpr int EACH = FMAS / SLOTS;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                // What the turn before loaded, just before this turn loads it anew.
                const float left = GLOBALS ? far[s * GLOBALS / SLOTS][i % GW] : x, right = LOADS ? held[s * LOADS / SLOTS][i % LW] : y;
                asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sums[(s * EACH + i) % SLOTS]) : "f"(left), "f"(right));
            }
            if (LOADS && s * LOADS / SLOTS != (s + 1) * LOADS / SLOTS) load_shared<LW>(held[s * LOADS / SLOTS], load_at + s * LOADS / SLOTS * 512);
            if (STORES && s * STORES / SLOTS != (s + 1) * STORES / SLOTS) store_shared<SW>(store_at + 8192 + s * STORES / SLOTS * 512, x);
            if (GLOBALS && s * GLOBALS / SLOTS != (s + 1) * GLOBALS / SLOTS) {
                // Without FFMAs an addition for each word, or the compiler moves the loads behind the loop.
#pragma unroll
                for (int j = 0; j < GW; ++j)
                    if (!EACH) sums[(s * GW + j) % SLOTS] += far[s * GLOBALS / SLOTS][j];
                load_global<GW>(far[s * GLOBALS / SLOTS], near + s * GLOBALS / SLOTS * 32 * (GSTEP ? GSTEP : 1));
            }
            if (COPIES && s * COPIES / SLOTS != (s + 1) * COPIES / SLOTS)
                copy<CW, BYPASS>(copy_at + s * COPIES / SLOTS * 512, source + s * COPIES / SLOTS * 32 * CFROM);
        }
        if (COPIES) asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 2;" ::: "memory");
        copy_at ^= 8192;
        if (GLOBALS || COPIES) place = place + pace & mask;
    }
    stamp_end(when);
    float total = 0;
#pragma unroll
    for (int i = 0; i < SLOTS; ++i) total += sums[i];
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
        for (int j = 0; j < LW; ++j) total += held[i][j];
#pragma unroll
    for (int i = 0; i < GLOBALS; ++i)
        for (int j = 0; j < GW; ++j) total += far[i][j];
    if (total == -1.0f) *sink = total;
}

// Barriers: a turn has STORES of 4 bytes to shared memory, a barrier, LOADS of 4 bytes with FMAS, and with BARS 2 another barrier.
template <int BARS, int FMAS, int LOADS, int STORES>
__global__ void __launch_bounds__(1024) barriers(unsigned long long* when, const float* data, float* sink, int turns)
{
    unsigned at = word_address(shared_words) + 4 * (threadIdx.x % 32);
    float sums[8], held[LOADS ? LOADS : 1];
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = threadIdx.x;
    for (unsigned i = threadIdx.x; i < 512; i += blockDim.x) shared_words[i] = make_float4(1e-9f, 1e-9f, 1e-9f, 1e-9f);
    const float x = data[threadIdx.x % 32];
    __syncthreads();
    stamp_start(when);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < STORES; ++i) asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(at + 4096 + 128 * i), "f"(x) : "memory");
        asm volatile("bar.sync 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < LOADS; ++i) asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(held[i]) : "r"(at + 128 * i) : "memory");
#pragma unroll
        for (int i = 0; i < FMAS; ++i)
            asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sums[i % 8]) : "f"(x), "f"(LOADS ? held[i * LOADS / FMAS % (LOADS ? LOADS : 1)] : x));
        if (BARS == 2) asm volatile("bar.sync 0;" ::: "memory");
        at ^= 2048;
    }
    stamp_end(when);
    float total = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) total += sums[i];
    if (total == -1.0f) *sink = total;
}

// Products of fragments as in the rungs: a turn has two steps, each of ROWS x COLS FFMAs, row by row or back and forth. With LOADED a step's
// fragments are loaded from shared memory during the step before; lanes beside each other take the same words of A and neighbours of B.
template <int ROWS, int COLS, int SNAKE, int LOADED>
__global__ void __launch_bounds__(256) outer(unsigned long long* when, const float* data, float* sink, int turns)
{
    const unsigned lane = threadIdx.x % 32;
    for (unsigned i = threadIdx.x; i < 2048; i += blockDim.x) shared_words[i] = make_float4(1e-9f, 1e-9f, 1e-9f, 1e-9f);
    unsigned a_at = word_address(shared_words) + 16 * (lane / 8), b_at = word_address(shared_words) + 16384 + 16 * (lane % 8);
    float a[2][ROWS], b[2][COLS], sums[ROWS][COLS] = {};
#pragma unroll
    for (int i = 0; i < ROWS; ++i) a[0][i] = a[1][i] = data[lane + 32 * i];
#pragma unroll
    for (int i = 0; i < COLS; ++i) b[0][i] = b[1][i] = data[lane + 1024 + 32 * i];
    __syncthreads();
    stamp_start(when);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (LOADED) {
#pragma unroll
                for (int i = 0; i < ROWS; i += 4)
                    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                 : "=f"(a[1 - k][i]), "=f"(a[1 - k][i + 1]), "=f"(a[1 - k][i + 2]), "=f"(a[1 - k][i + 3])
                                 : "r"(a_at + 1024 * k + 64 * (i / 4)));
#pragma unroll
                for (int i = 0; i < COLS; i += 4)
                    asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                                 : "=f"(b[1 - k][i]), "=f"(b[1 - k][i + 1]), "=f"(b[1 - k][i + 2]), "=f"(b[1 - k][i + 3])
                                 : "r"(b_at + 1024 * k + 128 * (i / 4)));
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLS; ++j) {
                    const int column = SNAKE && i % 2 ? COLS - 1 - j : j;
                    asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sums[i][column]) : "f"(a[k][i]), "f"(b[k][column]));
                }
        }
        a_at ^= 4096, b_at ^= 4096;
    }
    stamp_end(when);
    float total = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLS; ++j) total += sums[i][j];
    if (total == -1.0f) *sink = total;
}

// Code without loads: a turn is FMAS FFMAs in a row, of 16 bytes each.
template <int FMAS>
__global__ void __launch_bounds__(512) code(unsigned long long* when, const float* data, float* sink, int turns)
{
    float sums[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = threadIdx.x;
    const float x = data[threadIdx.x % 32], y = data[threadIdx.x % 32 + 32];
    stamp_start(when);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < FMAS; ++i) asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sums[i % 16]) : "f"(x), "f"(y));
    }
    stamp_end(when);
    float total = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) total += sums[i];
    if (total == -1.0f) *sink = total;
}
