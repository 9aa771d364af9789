/* gemmlab
summary = "sums along axes whose elements lie apart: columns side by side, strips of threads share the rows"
idea = "Adjacent lanes own adjacent columns, so each load is whole lines and nothing is exchanged until all rows are read."
source = "beyond the article: column sums as in torch's vectorized outer reduction, parts added by tickets"
op = "sums"
after = ""
branch = true
arch = "sm_80"
params = { BLOCK = 256, LOADS = 8, TEAM = 256, LANES = 32, SPLIT = 1 }
tune = { LANES = [4, 16, 32, 64, 256], SPLIT = [1, 2, 4, 8, 16, 33, 66, 132, 528] }
require = [
    "BLOCK == 128 or BLOCK == 256 or BLOCK == 512", "LOADS == 4 or LOADS == 8",
    "LANES >= 1 and LANES & (LANES - 1) == 0 and LANES <= TEAM", "TEAM & (TEAM - 1) == 0 and TEAM <= BLOCK",
    "1 <= SPLIT <= 4096 and (SPLIT == 1 or TEAM == BLOCK)", "not ACROSS or TEAM == BLOCK or k0 <= 4 * LANES",
]
grid = "ceil_div((n0 * ceil_div(k0, 4 * LANES) if ACROSS else ceil_div(n0, 4 * LANES)) * n1 * n2 * n3, BLOCK // TEAM), SPLIT"
threads = "BLOCK"
args = [
    "n0", "n1", "n2", "n3", "s0", "s1", "s2", "s3", "o0", "o1", "o2", "o3", "k0", "k1", "k2", "t0", "t1", "t2", "x",
    "out", "workspace", "tickets", "TEAM", "LANES",
]
workspace = "(4 if ACROSS else 16 * LANES) * blocks if SPLIT > 1 or (ACROSS and k0 > 4 * LANES) else 0"
tickets = "blocks // SPLIT if SPLIT > 1 or (ACROSS and k0 > 4 * LANES) else 0"
roundings = """ceil_div(k1 * k2 if ACROSS else k0 * k1 * k2, SPLIT * (TEAM // LANES) * LOADS) + (k2 if ACROSS else k1 * k2) + 1
    + 5 + ceil_div(SPLIT * ceil_div(k0, 4 * LANES) if ACROSS else SPLIT, TEAM if ACROSS else TEAM // LANES)
    + 2 * (5 + BLOCK // 32)"""
expect = [
    { shape = "1x64x1024", that = "global_load_requests == 64 * 1024 // 128 and global_atomic_requests == 0" },
    { shape = "1x64x1024", that = "global_load_sectors_per_request == 16 and shared_load_excess == 0" },
    { shape = "1x512x128", config = { SPLIT = 8 }, that = "global_atomic_requests == 8" },
]
*/

#include "team.cuh"

//                 lane 0     lane 1     lane 2     lane 3      LANES = 4: a tile of 16 columns
//    strip 0    | . . . .  | . . . .  | . . . .  | . . . .  |  row 0, row 3 ..     TEAM = 12 would be three strips
//    strip 1    | . . . .  | . . . .  | . . . .  | . . . .  |  row 1, row 4 ..
//    strip 2    | . . . .  | . . . .  | . . . .  | . . . .  |  row 2, row 5 ..
//
// The sums of all strips are added at the end. Columns that are adjacent but begin on no vector of 16 bytes are read
// one by one: a lane's four lie LANES columns apart then, so that lanes read adjacent ones.
//
// ACROSS: the columns are terms of one sum, too: a nest of rows, each with a gap behind it. Then tiles are parts.
//
// SPLIT blocks take a run of rows each and leave their parts; the one that comes last adds the parts in their order.

// The lane's sums of `rows` rows: LOADS of each strip are under way at once. `cols` are left in the tile.
template <int LOADS, bool VECTORS>
__device__ __forceinline__ float4
sum_run(const float* x, Index rows, Index row_step, int strip, int strips, int lane, int lanes, int cols, Index col_step)
{
    const int col = VECTORS ? 4 * lane : lane, apart = VECTORS ? 1 : lanes;  // the lane's first column, and to the next
    const Index step = strips * row_step;
    x += strip * row_step + col * col_step;
    float4 sums = {};
    if (col >= cols) return sums;
#pragma unroll 1
    for (Index left = rows - strip; left > 0; left -= LOADS * strips, x += LOADS * step) {
        const int here = min(left, static_cast<Index>(LOADS * strips));
        float4 held[LOADS] = {};
#pragma unroll
        for (int load = 0; load < LOADS; ++load) {
            if (load * strips >= here) continue;
            const float* const at = x + load * step;
            if (VECTORS) {
                held[load] = __ldg(reinterpret_cast<const float4*>(at));
            } else {
                held[load].x = __ldg(at);
                if (col + apart < cols) held[load].y = __ldg(at + apart * col_step);
                if (col + 2 * apart < cols) held[load].z = __ldg(at + 2 * apart * col_step);
                if (col + 3 * apart < cols) held[load].w = __ldg(at + 3 * apart * col_step);
            }
        }
        sums = sums + sum_in_pairs(held);
    }
    return sums;
}

template <int BLOCK, int LOADS, int ACROSS>
__global__ void __launch_bounds__(BLOCK, 768 / BLOCK) sum_columns(
    long long n0, long long n1, long long n2, long long n3, long long s0, long long s1, long long s2, long long s3,
    long long o0, long long o1, long long o2, long long o3, long long k0, long long k1, long long k2, long long t0,
    long long t1, long long t2, const float* x, float* out, float* workspace, unsigned* tickets, int team, int lanes)
{
    // Rows are taken in nests, inside which one step leads from each to the next.
    const Index cols = ACROSS ? k0 : n0, col_step = ACROSS ? t0 : s0;
    const Index rows = ACROSS ? k1 : k0, row_step = ACROSS ? t1 : t0;
    const Axis nests[] = {{ACROSS ? k2 : k1, ACROSS ? t2 : t1, 0}, {ACROSS ? 1 : k2, ACROSS ? 0 : t2, 0}};
    const Axis whole[] = {{n0, s0, o0}, {n1, s1, o1}, {n2, s2, o2}, {n3, s3, o3}, {1, 0, 0}};
    constexpr int OUTER = ACROSS ? 0 : 1;  // the first axis that is not the columns'
    const Axis axes[] = {whole[OUTER], whole[OUTER + 1], whole[OUTER + 2], whole[OUTER + 3]};

    const int thread = modulo(threadIdx.x, team), lane = modulo(thread, lanes), strip = over(thread, lanes);
    const int strips = over(team, lanes);
    const Index tiles = (cols + 4 * lanes - 1) >> (1 + __ffs(lanes)), all = tiles * (ACROSS ? n0 : 1) * n1 * n2 * n3;
    const Index number = blockIdx.x * static_cast<Index>(over(BLOCK, team)) + over(threadIdx.x, team);
    // A team behind the last tile repeats the last tile: all threads must meet at barriers.
    const Index own_number = min(number, all - 1);
    const Index other = tiles == 1 ? own_number : quotient(own_number, tiles), tile = own_number - other * tiles;
    const Place place = place_of(other, axes);
    const Index first_col = tile * 4 * lanes;
    const int cols_left = min(cols - first_col, static_cast<Index>(4 * lanes));
    x += place.in + first_col * col_step;
    const bool vectors = col_step == 1 && cols % 4 == 0 &&
                         on_vectors(x, {row_step, nests[0].step, nests[1].step, ACROSS ? s0 : 0, s1, s2, s3});

    const unsigned split = blockIdx.y, splits = gridDim.y;
    const Index total = rows * nests[0].extent * nests[1].extent;
    const Index begin = splits == 1 ? 0 : quotient(total * split, splits);
    const Index end = splits == 1 ? total : quotient(total * (split + 1), splits);
    float4 sums = {};
#pragma unroll 1
    for (Index row = begin; row < end;) {
        const Index nest = row < rows ? 0 : quotient(row, rows), from = row - nest * rows, count = min(rows - from, end - row);
        const float* const run = x + place_of(nest, nests).in + from * row_step;
        sums = sums + (vectors ? sum_run<LOADS, true>(run, count, row_step, strip, strips, lane, lanes, cols_left, 1)
                               : sum_run<LOADS / 2, false>(
                                     run, count, row_step, strip, strips, lane, lanes, cols_left, col_step));
        row += count;
    }

    if (ACROSS) {
        float own = sum_team<BLOCK>(sum_of(sums), team);
        const unsigned parts = tiles * splits;
        if (parts > 1) {
            float* const left = workspace + other * parts;
            if (thread == 0) left[tile * splits + split] = own;
            if (!take_last_ticket(tickets + other, parts)) return;
            own = 0.0f;
#pragma unroll 1
            for (unsigned part = thread; part < parts; part += BLOCK) own += __ldcg(left + part);
            own = sum_team<BLOCK>(own, team);
        }
        if (thread == 0 && number < all) out[place.out] = own;
        return;
    }
    sums = sum_strips<BLOCK>(sums, team, lanes);
    if (splits > 1) {
        float4* const left = reinterpret_cast<float4*>(workspace) + number * splits * lanes;
        if (strip == 0) left[split * lanes + lane] = sums;
        if (!take_last_ticket(tickets + number, splits)) return;
        sums = {};
#pragma unroll 1
        for (unsigned part = strip; part < splits; part += strips) sums = sums + __ldcg(left + part * lanes + lane);
        sums = sum_strips<BLOCK>(sums, team, lanes);
    }
    if (strip > 0 || number >= all) return;
    out += place.out + first_col * o0;
    const int apart = vectors ? 1 : lanes;
    const float four[] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int col = (vectors ? 4 * lane : lane) + i * apart;
        if (col < cols_left) out[col * o0] = four[i];
    }
}
