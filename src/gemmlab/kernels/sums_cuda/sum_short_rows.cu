/* gemmlab
summary = "sums along short rows: a few threads a row, ROWS rows a thread at once"
idea = "A short row gives a thread one load, so each thread requests ROWS rows, and the next ROWS before it adds these."
source = "beyond the article: segmented sums as in CUB's DeviceSegmentedReduce, several segments a warp"
op = "sums"
after = "sum_rows"
arch = "sm_80"
params = { BLOCK = 256, ROWS = 4, TEAM = 4, BLOCKS = 2112 }
tune = { TEAM = [1, 2, 4, 8, 16, 32], ROWS = [1, 2, 4] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512", "ROWS == 1 or ROWS == 2 or ROWS == 4",
    "TEAM >= 1 and TEAM & (TEAM - 1) == 0 and TEAM <= 32", "k1 * k2 == 1", "BLOCKS >= 1",
]
grid = "min(ceil_div(n0 * n1 * n2 * n3, BLOCK // TEAM * ROWS), BLOCKS)"
threads = "BLOCK"
args = [
    "n0", "n1", "n2", "n3", "s0", "s1", "s2", "s3", "o0", "o1", "o2", "o3", "k0", "t0", "x", "out", "TEAM",
]
roundings = "ceil_div(k0, 4 * TEAM) + 3 + 5"
expect = [
    # Four lanes read a row of 16 elements, eight rows a request.
    { shape = "1024x16x1", that = "global_load_requests == 1024 // 8" },
    { shape = "1024x16x1", that = "global_load_sectors_per_request == 16 and barriers == 0" },
]
*/

#include "team.cuh"

//   warp, teams of 4 threads:    row 0      row 1     ..  row 7      first load of each thread
//                                row 64     row 65    ..  row 71     second, and so on to ROWS
//
// Vectors of 16 bytes where every row begins on one; else a thread's four elements lie `team` elements apart, so that
// the lanes of a team read adjacent ones. A row longer than 4 * team elements takes several rounds.
//
// At most BLOCKS blocks take rows in turn. Rows that one step leads along, each with at most one vector a thread, need no
// arithmetic for places, and the next ones are under way while these are added.

// The sums of ROWS rows a thread, to each team's first thread. The shuffles of all rows follow each other, so that they
// do not wait for their sums one by one.
template <int ROWS>
__device__ __forceinline__ void sum_teams(float (&sums)[ROWS], int team)
{
#pragma unroll 1
    for (int distance = team / 2; distance > 0; distance /= 2)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[r] += __shfl_down_sync(ALL_LANES, sums[r], distance);
}

template <int BLOCK, int ROWS>
__global__ void __launch_bounds__(BLOCK, 1024 / BLOCK) sum_short_rows(
    long long n0, long long n1, long long n2, long long n3, long long s0, long long s1, long long s2, long long s3,
    long long o0, long long o1, long long o2, long long o3, long long k0, long long t0, const float* x, float* out,
    int team)
{
    const Axis axes[] = {{n0, s0, o0}, {n1, s1, o1}, {n2, s2, o2}, {n3, s3, o3}};
    const Index rows = n0 * n1 * n2 * n3;
    const int teams = over(BLOCK, team), thread = modulo(threadIdx.x, team), own_team = over(threadIdx.x, team);
    const unsigned each = teams * ROWS, chunks = (rows + each - 1) / each;  // of rows, that a block takes at a time
    const bool vectors = t0 == 1 && on_vectors(x, {s0, s1, s2, s3});

    if (n0 == rows && vectors && k0 % 4 == 0 && k0 <= 4 * team) {
        const Index step = teams * s0, out_step = teams * o0, apart = gridDim.x * static_cast<Index>(each);
        const Index base = blockIdx.x * static_cast<Index>(each) + own_team;
        const float* at = x + base * s0 + 4 * thread;
        const auto load = [&](float4(&held)[ROWS], Index left) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                held[r] = 4 * thread < k0 && r * teams < left ? __ldg(reinterpret_cast<const float4*>(at + r * step)) : float4{};
            at += apart * s0;
        };
        float4 held[ROWS];
        load(held, rows - base);
        out += base * o0;
        // The lanes of a warp stay together: what is left for the block counts.
#pragma unroll 1
        for (Index left = rows - base; left + own_team > 0; left -= apart, out += apart * o0) {
            float sums[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r] = sum_of(held[r]);
            load(held, left - apart);
            sum_teams(sums, team);
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (thread == 0 && r * teams < left) out[r * out_step] = sums[r];
        }
        return;
    }

#pragma unroll 1
    for (unsigned chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const Index first = chunk * static_cast<Index>(each) + own_team;
        Place places[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) places[r] = place_of(min(first + r * teams, rows - 1), axes);

        float sums[ROWS] = {};
#pragma unroll 1
        for (Index round = 0; round < k0; round += 4 * team) {
            float4 held[ROWS] = {};
            if (vectors && round + 4 * thread + 4 <= k0) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    held[r] = __ldg(reinterpret_cast<const float4*>(x + places[r].in + round + 4 * thread));
            } else {
                const int gap = vectors ? 1 : team;                               // between a thread's elements
                const Index i = round + (vectors ? 4 * thread : thread), count = k0 - i;  // the first, and what is left
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const float* const from = x + places[r].in + i * t0;
                    if (0 < count) held[r].x = __ldg(from);
                    if (gap < count) held[r].y = __ldg(from + gap * t0);
                    if (2 * gap < count) held[r].z = __ldg(from + 2 * gap * t0);
                    if (3 * gap < count) held[r].w = __ldg(from + 3 * gap * t0);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r] += sum_of(held[r]);
        }
        sum_teams(sums, team);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (thread == 0 && first + r * teams < rows) out[places[r].out] = sums[r];
    }
}
