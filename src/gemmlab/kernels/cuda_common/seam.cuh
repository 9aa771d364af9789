// The seam of C: a few rows and columns beyond the last whole tiles. A tile for them would cost as much as one that is
// full; here blocks of their own compute them as products of a matrix with a few vectors, in the launch of the tiles.
//
//              tiles of BN columns      seam: at most SEAM columns
//            +-----+-----+-----+-----+--+
//            |  0  |  1  |  2  |  3  |  |   blocks 12 and on    SEAM_LINES columns of the rows below, each
//         BM +-----+-----+-----+-----+  |       then            SEAM_LINES rows of the columns on the right
//            |  4  |  5  |  6  |  7  |  |
//            +-----+-----+-----+-----+  |   They come last, so they fill the multiprocessors that the last
//            |  8  |  9  |  10 |  11 |  |   wave of tiles leaves idle.
//            +-----+-----+-----+-----+--+
//      SEAM  |   rows of the seam       |
//            +--------------------------+
//
// One operand of a seam is wide: SEAM_LINES of its lines are a block's. The other has at most SEAM lines; all threads
// need all of its words, which come into shared memory, at most SEAM_STEPS steps of k at a time. Where k lies along the
// wide lines, lanes go along k, and a warp has some lines; where k lies across them, lanes are lines, and warps take
// turns along k. Sums of lanes, or of warps, are added in pairs. The order depends on K, the layout and the number of
// threads alone.
#pragma once

#include "block_product.cuh"
#include "copied_tile.cuh"
#include "reduce.cuh"
#include "tile.cuh"

constexpr int SEAM_LINES = 32;
constexpr int SEAM_STEPS = 2304;  // more than 2048: extents one beyond a power of two are what seams are for
constexpr int SEAM_LOADS = 32;    // words of the wide operand that a lane asks for at a time

// Tiles along an extent that leave at most SEAM lines to the seam.
template <int TILE, int SEAM>
__device__ __forceinline__ unsigned tiles_before_seam(int extent)
{
    return ceil_div(max(extent - SEAM, min(extent, 1)), TILE);
}

// What a block multiplies: `lines` of the wide operand and `count` of the narrow one, both at least 1.
struct SeamLines {
    const float* wide;
    int wide_ld, lines;
    const float* narrow;
    int narrow_ld, count;
    int depth;  // terms of each sum
};

// The words of the narrow operand for `steps` steps from `first` on, and zeros for lines that do not exist.
template <int SEAM, int THREADS, bool LIES>
__device__ __forceinline__ void load_seam(float* shared, const SeamLines& x, int first, int steps)
{
    __syncthreads();  // the steps before have been read
#pragma unroll 8
    for (int at = threadIdx.x; at < SEAM * steps; at += THREADS) {
        const int s = LIES == ALONG_K ? at / steps : at % SEAM, k = LIES == ALONG_K ? at % steps : at / SEAM;
        const Offset there = first + k;
        const float* const word =
            x.narrow + (LIES == ALONG_K ? s * static_cast<Offset>(x.narrow_ld) + there : there * x.narrow_ld + s);
        shared[s * SEAM_STEPS + k] = s < x.count ? *word : 0.0f;
    }
    __syncthreads();
}

// Calls give(line, s, sum) for every line of the block and every line of the seam, also for lines that do not exist.
template <int SEAM, int THREADS, bool WIDE_LIES, bool NARROW_LIES, class Give>
__device__ __forceinline__ void multiply_seam(const SeamLines& x, float* shared, const Give& give)
{
    constexpr int WARPS = THREADS / WARP;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if constexpr (WIDE_LIES == ALONG_K) {
        constexpr int OWN = SEAM_LINES / WARPS < 1 ? 1 : SEAM_LINES / WARPS;  // lines of a warp
        constexpr int TURNS = SEAM_LOADS / OWN;                               // words of each that are asked for
        float sums[OWN][SEAM] = {};
        for (int first = 0; first < x.depth; first += SEAM_STEPS) {
            const int steps = min(SEAM_STEPS, x.depth - first);
            load_seam<SEAM, THREADS, NARROW_LIES>(shared, x, first, steps);
            const float* from[OWN];
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                from[i] = x.wide + min(warp * OWN + i, x.lines - 1) * static_cast<Offset>(x.wide_ld) + first;
            for (int k = lane; k < steps; k += TURNS * WARP) {
                float words[TURNS][OWN];
#pragma unroll
                for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
                    for (int i = 0; i < OWN; ++i)
                        words[turn][i] = k + turn * WARP < steps ? from[i][k + turn * WARP] : 0.0f;
#pragma unroll
                for (int turn = 0; turn < TURNS; ++turn) {
                    if (k + turn * WARP >= steps) break;
#pragma unroll
                    for (int i = 0; i < OWN; ++i)
#pragma unroll
                        for (int s = 0; s < SEAM; ++s)
                            sums[i][s] += words[turn][i] * shared[s * SEAM_STEPS + k + turn * WARP];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < OWN; ++i)
#pragma unroll
            for (int s = 0; s < SEAM; ++s) {
                const float sum = reduce_lanes<SUM>(sums[i][s]);
                if (lane == 0) give(warp * OWN + i, s, sum);
            }
    } else {
        static_assert(SEAM_LINES == WARP, "lanes are lines");
        float sums[SEAM] = {};
        for (int first = 0; first < x.depth; first += SEAM_STEPS) {
            const int steps = min(SEAM_STEPS, x.depth - first);
            load_seam<SEAM, THREADS, NARROW_LIES>(shared, x, first, steps);
            const float* const from = x.wide + first * static_cast<Offset>(x.wide_ld) + min(lane, x.lines - 1);
            for (int k = warp; k < steps; k += SEAM_LOADS * WARPS) {
                float words[SEAM_LOADS];
#pragma unroll
                for (int turn = 0; turn < SEAM_LOADS; ++turn)
                    words[turn] = k + turn * WARPS < steps ? from[(k + turn * WARPS) * static_cast<Offset>(x.wide_ld)]
                                                           : 0.0f;
#pragma unroll
                for (int turn = 0; turn < SEAM_LOADS; ++turn) {
                    if (k + turn * WARPS >= steps) break;
#pragma unroll
                    for (int s = 0; s < SEAM; ++s)
                        sums[s] += words[turn] * shared[s * SEAM_STEPS + k + turn * WARPS];
                }
            }
        }
        __syncthreads();  // the narrow words have been read
#pragma unroll
        for (int s = 0; s < SEAM; ++s) shared[(warp * SEAM + s) * WARP + lane] = sums[s];
        __syncthreads();
        for (int at = threadIdx.x; at < SEAM * WARP; at += THREADS) {
            float of_warp[WARPS];
#pragma unroll
            for (int w = 0; w < WARPS; ++w) of_warp[w] = shared[w * SEAM * WARP + at];
#pragma unroll
            for (int next = 1; next < WARPS; next *= 2)
#pragma unroll
                for (int w = 0; w < WARPS; w += 2 * next) of_warp[w] += of_warp[w + next];
            give(at % WARP, at / WARP, of_warp[0]);
        }
    }
}

// The seam's block number `block`, counted from 0. `shared` has room for SEAM * SEAM_STEPS words, and in their place
// for SEAM words a thread.
template <int BM, int BN, int SEAM, int THREADS, bool TRANS_A, bool TRANS_B>
__device__ __forceinline__ void
store_seam(const Product& p, unsigned block, float alpha, float beta, float* shared)
{
    const int rows = tiles_before_seam<BM, SEAM>(p.M) * BM, cols = tiles_before_seam<BN, SEAM>(p.N) * BN;  // of tiles
    const unsigned below = p.M > rows ? ceil_div(p.N, SEAM_LINES) : 0;
    const int depth = sum_depth(p.K, alpha);
    const auto store = [&](int row, int col, float sum) {
        store_element(p.C + row * static_cast<Offset>(p.ldc) + col, 1.0f, __fmul_rn(alpha, sum), beta);
    };
    if (block < below) {
        const int col = block * SEAM_LINES, count = p.M - rows, lines = p.N - col;
        const SeamLines x = {p.B + (TRANS_B ? col * static_cast<Offset>(p.ldb) : col), p.ldb, lines,
                             p.A + (TRANS_A ? rows : rows * static_cast<Offset>(p.lda)), p.lda, count, depth};
        multiply_seam<SEAM, THREADS, TRANS_B, !TRANS_A>(x, shared, [&](int line, int s, float sum) {
            if (line < lines && s < count) store(rows + s, col + line, sum);
        });
    } else {
        const int row = (block - below) * SEAM_LINES, count = p.N - cols, lines = min(p.M, rows) - row;
        const SeamLines x = {p.A + (TRANS_A ? row : row * static_cast<Offset>(p.lda)), p.lda, lines,
                             p.B + (TRANS_B ? cols * static_cast<Offset>(p.ldb) : cols), p.ldb, count, depth};
        multiply_seam<SEAM, THREADS, !TRANS_A, TRANS_B>(x, shared, [&](int line, int s, float sum) {
            if (line < lines && s < count) store(row + line, cols + s, sum);
        });
    }
}
