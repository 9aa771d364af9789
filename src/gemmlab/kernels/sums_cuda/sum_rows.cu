/* gemmlab
summary = "sums along the axis whose elements are adjacent: a team of threads a row, long rows cut into parts"
idea = "Teams grow with the rows, and a thread has LOADS * 16 bytes in flight, so rows of any length are read at one rate."
source = "beyond the article: reduce_peak for many rows, with one ticket a row for rows that several blocks read"
op = "sums"
after = ""
arch = "sm_80"
params = { BLOCK = 256, LOADS = 8, TEAM = 256, SPLIT = 1 }
tune = { TEAM = [8, 16, 32, 64, 128, 256], SPLIT = [1, 2, 4, 8, 16, 33, 66] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512 or BLOCK == 1024", "LOADS == 4 or LOADS == 8",
    "TEAM >= 1 and TEAM & (TEAM - 1) == 0 and TEAM <= BLOCK", "1 <= SPLIT <= 1024 and (SPLIT == 1 or TEAM == BLOCK)",
    "k1 * k2 == 1",
]
grid = "ceil_div(n0 * n1 * n2 * n3, BLOCK // TEAM), SPLIT"
threads = "BLOCK"
args = [
    "n0", "n1", "n2", "n3", "s0", "s1", "s2", "s3", "o0", "o1", "o2", "o3", "k0", "t0", "x", "out", "workspace",
    "tickets", "TEAM",
]
workspace = "4 * SPLIT * n0 * n1 * n2 * n3 if SPLIT > 1 else 0"
tickets = "n0 * n1 * n2 * n3 if SPLIT > 1 else 0"
roundings = "ceil_div(k0, (4 if t0 == 1 else 1) * TEAM * SPLIT * LOADS) + 3 + 3 + 10 + ceil_div(SPLIT, BLOCK) + 10"
expect = [
    # 16 bytes a lane and load; a row of 1024 elements is one turn of 32 lanes.
    { shape = "64x1024x1", config = { TEAM = 32 }, that = "global_load_requests == 64 * 8" },
    { shape = "64x1024x1", config = { TEAM = 32 }, that = "global_load_sectors_per_request == 16" },
    { shape = "4x8192x1", config = { SPLIT = 2 }, that = "global_atomic_requests == 8" },
]
*/

#include "team.cuh"

//   row     . . | v v v v v v v v v v v v v v v v v v v | .       teams of 4 threads, LOADS = 2, SPLIT = 1
//          head   whole vectors of 16 bytes, where they   tail
//                 lie   0 1 2 3 0 1 2 3 | 0 1 2 3 ..
//                         one turn
//
// A row may begin anywhere: up to three elements before its first whole vector, and up to three behind the last one,
// are read by a thread each. Rows whose elements lie apart (t0 > 1) are read element by element.
//
// SPLIT blocks take turns in a row and leave a part each; the one that comes last adds the parts in their order.
template <int BLOCK, int LOADS>
__global__ void __launch_bounds__(BLOCK, 1024 / BLOCK) sum_rows(
    long long n0, long long n1, long long n2, long long n3, long long s0, long long s1, long long s2, long long s3,
    long long o0, long long o1, long long o2, long long o3, long long k0, long long t0, const float* x, float* out,
    float* workspace, unsigned* tickets, int team)
{
    const Axis axes[] = {{n0, s0, o0}, {n1, s1, o1}, {n2, s2, o2}, {n3, s3, o3}};
    const Index rows = n0 * n1 * n2 * n3;
    const Index row = blockIdx.x * static_cast<Index>(over(BLOCK, team)) + over(threadIdx.x, team);
    const int thread = modulo(threadIdx.x, team);
    const unsigned part = blockIdx.y, parts = gridDim.y;
    // A team behind the last row repeats the last row: all threads must meet at barriers.
    const Place place = place_of(min(row, rows - 1), axes);
    x += place.in;

    const int apart = parts * team;         // between two loads of a thread, at most 2^20
    const int first = part * team + thread;  // [0, apart)
    float own = 0.0f;
    if (t0 == 1) {
        const Index head = min(k0, static_cast<Index>(words_to_alignment(x)));  // [0, 3]
        const Index count = (k0 - head) / 4;                                    // whole vectors
        const int tail = (k0 - head) % 4;                                       // [0, 3]
        const float4* at = reinterpret_cast<const float4*>(x + head) + first;
        float4 sums = {};
#pragma unroll 1
        for (Index left = count - first; left > 0; left -= LOADS * apart, at += LOADS * apart) {
            const int here = min(left, static_cast<Index>(LOADS * apart));
            float4 held[LOADS] = {};
#pragma unroll
            for (int load = 0; load < LOADS; ++load)
                if (load * apart < here) held[load] = __ldg(at + load * apart);
            sums = sums + sum_in_pairs(held);
        }
        own = sum_of(sums);
        if (part == 0) {
#pragma unroll 1
            for (int i = thread; i < head; i += team) own += x[i];
#pragma unroll 1
            for (int i = thread; i < tail; i += team) own += x[k0 - tail + i];
        }
    } else {
        const Index step = apart * t0;
        const float* at = x + first * t0;
#pragma unroll 1
        for (Index left = k0 - first; left > 0; left -= LOADS * apart, at += LOADS * step) {
            const int here = min(left, static_cast<Index>(LOADS * apart));
            float held[LOADS] = {};
#pragma unroll
            for (int load = 0; load < LOADS; ++load)
                if (load * apart < here) held[load] = __ldg(at + load * step);
            own += sum_in_pairs(held);
        }
    }
    own = sum_team<BLOCK>(own, team);

    if (parts > 1) {
        float* const left = workspace + row * parts;  // one row a block
        if (thread == 0) left[part] = own;
        if (!take_last_ticket(tickets + row, parts)) return;
        own = 0.0f;
#pragma unroll 1
        for (unsigned i = thread; i < parts; i += BLOCK) own += __ldcg(left + i);
        own = sum_team<BLOCK>(own, team);
    }
    if (thread == 0 && row < rows) out[place.out] = own;
}
