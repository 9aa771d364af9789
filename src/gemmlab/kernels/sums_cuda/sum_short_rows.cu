/* gemmlab
summary = "sums along short rows: a few threads a row, ROWS rows a thread at once"
idea = "A short row gives a thread one load, so each thread requests one load of ROWS rows before it adds any."
source = "beyond the article: segmented sums as in CUB's DeviceSegmentedReduce, several segments a warp"
op = "sums"
after = "sum_rows"
arch = "sm_80"
params = { BLOCK = 256, ROWS = 4, TEAM = 4 }
tune = { TEAM = [1, 2, 4, 8, 16, 32], ROWS = [1, 2, 4, 8] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512", "ROWS == 1 or ROWS == 2 or ROWS == 4 or ROWS == 8",
    "TEAM >= 1 and TEAM & (TEAM - 1) == 0 and TEAM <= 32", "k1 * k2 == 1",
]
grid = "ceil_div(n0 * n1 * n2 * n3, BLOCK // TEAM * ROWS)"
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
template <int BLOCK, int ROWS>
__global__ void __launch_bounds__(BLOCK, 1024 / BLOCK) sum_short_rows(
    long long n0, long long n1, long long n2, long long n3, long long s0, long long s1, long long s2, long long s3,
    long long o0, long long o1, long long o2, long long o3, long long k0, long long t0, const float* x, float* out,
    int team)
{
    const Axis axes[] = {{n0, s0, o0}, {n1, s1, o1}, {n2, s2, o2}, {n3, s3, o3}};
    const Index rows = n0 * n1 * n2 * n3;
    const int teams = over(BLOCK, team), thread = modulo(threadIdx.x, team);
    const Index first = blockIdx.x * static_cast<Index>(teams * ROWS) + over(threadIdx.x, team);
    const bool vectors = t0 == 1 && on_vectors(x, {s0, s1, s2, s3});

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
            const int apart = vectors ? 1 : team;                               // between a thread's elements
            const Index i = round + (vectors ? 4 * thread : thread), count = k0 - i;  // the first, and what is left
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float* const at = x + places[r].in + i * t0;
                if (0 < count) held[r].x = __ldg(at);
                if (apart < count) held[r].y = __ldg(at + apart * t0);
                if (2 * apart < count) held[r].z = __ldg(at + 2 * apart * t0);
                if (3 * apart < count) held[r].w = __ldg(at + 3 * apart * t0);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[r] += sum_of(held[r]);
    }

#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float sum = sum_team<BLOCK>(sums[r], team);
        if (thread == 0 && first + r * teams < rows) out[places[r].out] = sum;
    }
}
