/* gemmlab
summary = "sums in small groups that lie without gaps: whole lines to shared memory, then a thread a result"
idea = "Short terms in rows of odd widths fit no vector, but their groups lie end to end: read lines, and add from shared memory."
source = "beyond the article: coalesced loads with a padded tile, as in a transpose by way of shared memory"
op = "sums"
after = "sum_short_rows"
arch = "sm_80"
params = { BLOCK = 256, LOADS = 16, GROUPS = 8 }
tune = { GROUPS = [1, 8, 20, 80, 240] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512", "LOADS == 8 or LOADS == 16", "GROUPS >= 1",
    "k0 >= 1 and k1 * k2 == 1 and n2 * n3 == 1", "GROUPS * t0 * (k0 + 1 - k0 % 2) <= BLOCK * LOADS",
    "(t0 == 1 and s0 == k0 and n1 == 1) or (s0 == 1 and n0 == t0 and s1 == t0 * k0)",
]
grid = "ceil_div(n0 if t0 == 1 else n1, GROUPS)"
threads = "BLOCK"
args = ["n0", "n1", "o0", "o1", "k0", "t0", "x", "out", "GROUPS"]
roundings = "ceil_div(k0, 4) + 5"
expect = [
    # Whole lines, 128 bytes a request.
    { shape = "80x16x3", config = { GROUPS = 80 }, that = "global_load_requests == 80 * 48 // 32" },
    { shape = "80x16x3", config = { GROUPS = 80 }, that = "global_load_sectors_per_request == 4" },
    # Reads have no conflicts. The gap within a warp's 32 elements makes two of them meet in a bank when they are written.
    { shape = "240x16x1", config = { GROUPS = 240 }, that = "shared_load_excess == 0" },
    { shape = "240x16x1", config = { GROUPS = 240 }, that = "shared_store_excess == 240 * 16 // 32" },
]
*/

#include "strided.cuh"

//   x          | a a a a a a | b b b b b b | c c c c c c |       groups of 3 terms, 2 results side by side
//   shared     | a a a a a a | b b b b b b | c c c c c c |       read in lines, whatever a group's size
//   thread     0: a. a. a.    1: .a .a .a    2: b. b. b.    3: .b ..
//
// If a group has an even number of terms, a row's width is left free behind it in shared memory: then the first elements
// of groups lie an odd number of rows apart, and the banks that a warp reads are different ones, or nearly so.
template <int BLOCK, int LOADS>
__global__ void __launch_bounds__(BLOCK, 1536 / BLOCK) sum_staged(
    long long n0, long long n1, long long o0, long long o1, long long k0, long long t0, const float* x, float* out,
    int groups)
{
    __shared__ float staged[BLOCK * LOADS];
    const unsigned beside = t0, terms = k0, size = beside * terms;  // all at most BLOCK * LOADS
    const Index first = blockIdx.x * static_cast<Index>(groups), left = (beside == 1 ? n0 : n1) - first;
    const unsigned here = min(left, static_cast<Index>(groups)), count = here * size;
    x += first * size + threadIdx.x;
    float held[LOADS];
#pragma unroll
    for (int load = 0; load < LOADS; ++load) held[load] = threadIdx.x + load * BLOCK < count ? __ldg(x + load * BLOCK) : 0.0f;

    const unsigned gap = terms % 2 == 0 ? beside : 0;
    unsigned group = threadIdx.x / size, within = threadIdx.x % size;
    const unsigned groups_on = BLOCK / size, on = BLOCK % size;
#pragma unroll
    for (int load = 0; load < LOADS; ++load) {
        const unsigned i = threadIdx.x + load * BLOCK;
        if (i < count) staged[i + group * gap] = held[load];
        group += groups_on;
        within += on;
        if (within >= size) {
            within -= size;
            ++group;
        }
    }
    __syncthreads();

    const Index group_step = beside == 1 ? o0 : o1;
    for (unsigned result = threadIdx.x; result < here * beside; result += BLOCK) {
        const unsigned of = result / beside, col = result - of * beside;
        const float* const at = staged + of * (size + gap) + col;
        float sum = 0.0f;
        unsigned term = 0;
#pragma unroll 2
        for (; term + 4 <= terms; term += 4) {
            const float* const four = at + term * beside;
            sum += (four[0] + four[beside]) + (four[2 * beside] + four[3 * beside]);
        }
#pragma unroll 1
        for (; term < terms; ++term) sum += at[term * beside];
        out[(first + of) * group_step + col * o0] = sum;
    }
}
