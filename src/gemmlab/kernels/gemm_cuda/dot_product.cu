/* gemmlab
summary = "a row or a column times lines with k along them: lanes go along k, words go to registers"
idea = "A thread uses no word twice, as in row_product; lanes go along k, so even one result keeps all lanes busy."
source = "reduce_peak, with two operands; the dot products of public GEMV kernels"
op = "gemm"
after = "row_product"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = "ceil_div(min(M, N), STRIP) * ceil_div(max(M, N), LINES) * max(1, min(SPLITS, ceil_div(K, BK)))"
threads = "BK // 4"
steps = "BK * ceil_div(ceil_div(K, BK), SPLITS)"
tickets = "blocks if SPLITS > 1 else 0"
workspace = "4 * STRIP * LINES * blocks if SPLITS > 1 else 0"
require = [
    "1 <= STRIP <= 4 and 1 <= LINES <= 16 and 1 <= LOADS <= 16 and LOADS * (STRIP + LINES) <= 40",
    "128 <= BK <= 4096 and BK & BK - 1 == 0 and 1 <= SPLITS <= 1024 and (ONCE == 0 or ONCE == 2)",
]
expect = [
    # 16 bytes a lane. Each word of the wide operand once; those of the other one for every LINES lines.
    { shape = "64x1x4096", that = "128 * global_load_requests == M * K + K * (M // LINES)" },
    { shape = "64x1x4096", that = "8 * global_load_sectors == M * K + K * (M // LINES) and global_load_excess == 0" },
    { shape = "64x1x4096", that = "shared_load_excess + shared_store_excess + global_atomic_requests == 0" },
    # Each part takes one ticket; one warp of the last one reads what all have left.
    { shape = "1x1x65536", config = { LINES = 1, SPLITS = 32 }, that = "global_atomic_requests == 32" },
    { shape = "1x1x65536", config = { LINES = 1, SPLITS = 32 }, that = "128 * (global_load_requests - 1) == 2 * K" },
]

[params]
STRIP = 1   # rows or columns of the narrow operand
LINES = 4   # of the wide one, a block
BK = 1024   # steps of k at a time, four a thread
LOADS = 4   # groups of BK steps under way at once
ONCE = 2    # the wide operand takes no room in the caches that others need (four_once.cuh); 0: as other words do
SPLITS = 1  # parts of k, each a block's

[tune]
LINES = [1, 2, 4, 8]
BK = [512, 1024, 2048]
LOADS = [2, 4, 8]
SPLITS = [1, 8]
*/

#include "epilogue.cuh"
#include "four_once.cuh"
#include "parts.cuh"
#include "reduce.cuh"
#include "specialize.cuh"
#include "tile.cuh"

// How many blocks have room on a multiprocessor: a thread needs registers for words in flight, sums and addresses.
constexpr int resident_dots(int threads, int lines, int strip, int loads)
{
    const int words = 4 * loads * (lines + strip) + lines * strip + 2 * (lines + strip) + 24;
    const int registers = words > 255 ? 255 : words < 64 ? 64 : words;
    const int blocks = 65536 / (threads * registers);
    return blocks < 1 ? 1 : blocks;
}

// One of the operands: its lines are rows of A or columns of B. One of the two strides is 1.
struct Lines {
    const float* from;
    Offset to_line, to_k;
    int count;

    // Whether four steps of k are a vector of 16 bytes, for every line.
    __device__ __forceinline__ bool in_fours() const
    {
        return to_k == 1 && reinterpret_cast<unsigned long long>(from) % 16 == 0 && (count == 1 || to_line % 4 == 0);
    }
};

//   k       [ t0 t0 t0 t0 t1 t1 t1 t1 ... ][ t0 t0 t0 t0 t1 ...        four steps a thread, BK a block
//            load 0                         load 1
//   tile    STRIP lines of the narrow operand, LINES of the wide one; every thread has sums for all pairs of them
//   block   a tile's part of k: blockIdx.x / tiles
//
// A thread asks for LOADS times four steps of all its lines before it uses the first. A block's sums are added lane by
// lane, then warp by warp. Each part leaves its own; the last one adds them, lanes along the parts. All of this is the
// same for any addresses: rows that do not begin on 16 bytes are read word by word, by the same threads.
template <int STRIP, int LINES, int BK, int LOADS, int ONCE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(BK / 4, resident_dots(BK / 4, LINES, STRIP, LOADS)) dot_product(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    unsigned* tickets, float* workspace)
{
    constexpr int THREADS = BK / 4, WARPS = THREADS / WARP, PAIRS = STRIP * LINES;
    __shared__ float warp_sums[PAIRS][WARPS];
    const int depth = sum_depth(K, alpha), lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

    const bool b_is_wide = M < N || (M == N && TRANS_B);
    const Lines a = {A, TRANS_A ? 1 : lda, TRANS_A ? lda : 1, M}, b = {B, TRANS_B ? ldb : 1, TRANS_B ? 1 : ldb, N};
    const Lines wide = b_is_wide ? b : a, narrow = b_is_wide ? a : b;
    const unsigned strips = ceil_div(narrow.count, STRIP), tiles = strips * ceil_div(wide.count, LINES);
    const unsigned tile = blockIdx.x % tiles, part = blockIdx.x / tiles, parts = gridDim.x / tiles;
    const int strip = tile % strips * STRIP, line = tile / strips * LINES;  // the tile's first

    // This part's steps of k, in blocks of BK. All parts have the same number of blocks, or one more.
    const unsigned blocks = ceil_div(depth, BK), count = blocks / parts + (part < blocks % parts);
    const Offset first = (blocks / parts * part + min(part, blocks % parts)) * static_cast<Offset>(BK);
    const int steps = min(count * static_cast<Offset>(BK), depth - first);  // below 1 where there are none

    float sums[STRIP][LINES] = {};
    specialize(wide.in_fours() && narrow.in_fours() && depth % 4 == 0, [&](auto fours) {
        const Offset start = first + 4 * threadIdx.x;
        const float *wide_from[LINES], *narrow_from[STRIP];
#pragma unroll
        for (int l = 0; l < LINES; ++l)  // the last line stands in for those outside: nobody stores their sums
            wide_from[l] = wide.from + min(line + l, wide.count - 1) * wide.to_line + start * wide.to_k;
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            narrow_from[s] = narrow.from + min(strip + s, narrow.count - 1) * narrow.to_line + start * narrow.to_k;
        Offset done = 0;
#pragma unroll 1
        for (int left = steps - 4 * static_cast<int>(threadIdx.x); left > 0; left -= LOADS * BK, done += LOADS * BK) {
            float4 wide_words[LOADS][LINES], narrow_words[LOADS][STRIP];
#pragma unroll
            for (int load = 0; load < LOADS; ++load) {
#pragma unroll
                for (int l = 0; l < LINES; ++l)
                    wide_words[load][l] = load_four_once<fours, ONCE>(
                        wide_from[l] + (done + load * BK) * (fours ? 1 : wide.to_k), wide.to_k, left - load * BK);
#pragma unroll
                for (int s = 0; s < STRIP; ++s)
                    narrow_words[load][s] = load_four_once<fours, 0>(
                        narrow_from[s] + (done + load * BK) * (fours ? 1 : narrow.to_k), narrow.to_k,
                        left - load * BK);
            }
#pragma unroll
            for (int load = 0; load < LOADS; ++load)
#pragma unroll
                for (int s = 0; s < STRIP; ++s)
#pragma unroll
                    for (int l = 0; l < LINES; ++l) {
                        const float4 x = wide_words[load][l], y = narrow_words[load][s];
                        sums[s][l] += x.x * y.x;
                        sums[s][l] += x.y * y.y;
                        sums[s][l] += x.z * y.z;
                        sums[s][l] += x.w * y.w;
                    }
        }
    });

#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
        const float sum = reduce_lanes<SUM>(sums[pair / LINES][pair % LINES]);
        if (lane == 0) warp_sums[pair][warp] = sum;
    }
    __syncthreads();

    const auto store = [&](int pair, float sum) {
        const int narrow_at = strip + pair / LINES, wide_at = line + pair % LINES;
        if (narrow_at >= narrow.count || wide_at >= wide.count) return;
        const Offset row = b_is_wide ? narrow_at : wide_at, col = b_is_wide ? wide_at : narrow_at;
        store_element(C + row * ldc + col, 1.0f, __fmul_rn(alpha, sum), beta);
    };
    float* const left = workspace + tile * static_cast<Offset>(parts) * PAIRS;  // [pair][part]
    for (int pair = threadIdx.x; pair < PAIRS; pair += THREADS) {
        float of_warp[WARPS];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) of_warp[w] = warp_sums[pair][w];
#pragma unroll
        for (int next = 1; next < WARPS; next *= 2)
#pragma unroll
            for (int w = 0; w < WARPS; w += 2 * next) of_warp[w] += of_warp[w + next];
        if (parts == 1) store(pair, of_warp[0]);
        else left[pair * static_cast<Offset>(parts) + part] = of_warp[0];
    }
    if (parts == 1 || !take_last_ticket(tickets + tile, parts)) return;
    for (int pair = warp; pair < PAIRS; pair += WARPS) {
        float sum = 0.0f;
        for (unsigned other = lane; other < parts; other += 8 * WARP) {
            float of_part[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const bool exists = other + i * WARP < parts;
                of_part[i] = exists ? __ldcg(left + pair * static_cast<Offset>(parts) + other + i * WARP) : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) sum += of_part[i];
        }
        sum = reduce_lanes<SUM>(sum);
        if (lane == 0) store(pair, sum);
    }
}
