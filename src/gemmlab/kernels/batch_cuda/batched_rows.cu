/* gemmlab
summary = "products of a few rows or columns: each wide matrix is read once, without padded tiles"
idea = "A tile of 32 rows for one row computes 32 times too much; without tiles the rate of reading memory is the limit."
source = "batched GEMV as in cuBLAS and in decoding kernels: lanes along adjacent words"
op = "batch"
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, axes"
grid = "batch * ceil_div(min(M, N), ROWS) * ceil_div(max(M, N), WARPS * LINES if (TRANS_B if M <= N else not TRANS_A) else 128)"
threads = "32 * WARPS"
require = [
    "ROWS == 1 or ROWS == 2 or ROWS == 4 or ROWS == 8",
    "LINES == 4 or LINES == 8 or LINES == 16",
    "WARPS == 4 or WARPS == 8 or WARPS == 16",
    "ROWS * LINES <= 64 and 512 * ROWS * WARPS <= 49152",
]
expect = [
    # k goes across the rows of B: 16 bytes a lane, each word once; a word of A for each, 32 at a time.
    { shape = "3*1x256x256", that = "128 * executed_LDG_128 == batch * K * N and shared_load_excess == 0" },
    { shape = "3*1x256x256", that = "8 * global_load_sectors == batch * (K * N + K * (N // 128))" },
]

[params]
ROWS = 1   # of the narrow matrix, a block
LINES = 8  # of the wide one a warp has at a time, where k goes along them
WARPS = 8

[tune]
ROWS = [1, 2, 4, 8]
LINES = [4, 8, 16]
WARPS = [4, 8, 16]
*/

#include "batch_axes.cuh"
#include "epilogue.cuh"
#include "specialize.cuh"

// The wide matrix is op(B) if M <= N, else op(A) transposed: K x width. A block takes ROWS rows of the narrow one.
// Element (r, k) of these lies at r * row + k * step, and result (r, j) at r * down + j * over.
struct Strip {
    const float* narrow;
    Offset row, step;
    const float* wide;
    int ld, width;
    float* c;
    Offset down, over;
    int rows;  // of the narrow matrix from here on
    int depth;
};

// The wide matrix has columns side by side:           or k side by side:
//
//            128 columns, 4 a lane                        LINES columns of a warp, 4 k a lane
//      k    +----------------+                            +----------------+
//      0    |  warp 0        |  each warp has a share     |  column j      |  sums[j] of a lane has every 32nd
//      :    |  ...           |  of k; their sums are      |  column j + 1  |  four of k; lanes add up theirs
//      :    |  warp 1        |  added in shared memory    |  ...           |  by shuffles
template <int ROWS, int WARPS>
__device__ __forceinline__ void multiply_across_k(const Strip& s, int group, float alpha, float beta)
{
    constexpr int UNROLL = ROWS <= 2 ? 8 : 4;
    __shared__ __align__(16) float partial[WARPS][ROWS][128];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int col = group * 128 + 4 * lane, cols = s.width - col;  // of this lane; maybe none
    const int share = (s.depth + WARPS - 1) / WARPS;
    const int first = min(warp * share, s.depth), behind = min(first + share, s.depth);
    float sums[ROWS][4] = {};
    specialize(s.width % 4 == 0 && rows_are_aligned(s.wide, s.ld), [&](auto fours) {
        for (int k = first; k < behind; k += 32) {
            float own[ROWS];  // element k + lane of each row
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                own[r] = r < s.rows && k + lane < behind ? s.narrow[r * s.row + (k + lane) * s.step] : 0.0f;
            const int steps = min(32, behind - k);
            for (int i = 0; i < steps; i += UNROLL) {
                float4 words[UNROLL];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
                    const float* const from = s.wide + (k + i + u) * static_cast<Offset>(s.ld) + col;
                    words[u] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if (i + u < steps && cols > 0)
                        words[u] = fours ? *reinterpret_cast<const float4*>(from) : load_four(from, cols, false);
                }
#pragma unroll
                for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
                        const float x = __shfl_sync(0xFFFFFFFF, own[r], i + u);
                        sums[r][0] += x * words[u].x;
                        sums[r][1] += x * words[u].y;
                        sums[r][2] += x * words[u].z;
                        sums[r][3] += x * words[u].w;
                    }
            }
        }
    });
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        *reinterpret_cast<float4*>(&partial[warp][r][4 * lane]) =
            make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * 128; i += 32 * WARPS) {
        const int r = i / 128, j = group * 128 + i % 128;
        float parts[WARPS];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) parts[w] = partial[w][r][i % 128];
#pragma unroll
        for (int half = WARPS / 2; half > 0; half /= 2)
#pragma unroll
            for (int w = 0; w < half; ++w) parts[w] += parts[w + half];
        if (r < s.rows && j < s.width) store_element(s.c + r * s.down + j * s.over, alpha, parts[0], beta);
    }
}

template <int ROWS, int LINES, int WARPS>
__device__ __forceinline__ void multiply_along_k(const Strip& s, int group, float alpha, float beta)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = (group * WARPS + warp) * LINES;
    const int lines = s.width - first;  // of this warp from here on; maybe none
    float sums[LINES][ROWS] = {};
    specialize(s.depth % 4 == 0 && rows_are_aligned(s.wide, s.ld), [&](auto fours) {
        for (int k = 4 * lane; k < s.depth; k += 128) {
            const int left = s.depth - k;
            float4 words[LINES];
#pragma unroll
            for (int j = 0; j < LINES; ++j) {
                const float* const from = s.wide + (first + j) * static_cast<Offset>(s.ld) + k;
                words[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (j < lines) words[j] = fours ? *reinterpret_cast<const float4*>(from) : load_four(from, left, false);
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (r >= s.rows) break;
                float x[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) x[i] = i < left ? s.narrow[r * s.row + (k + i) * s.step] : 0.0f;
#pragma unroll
                for (int j = 0; j < LINES; ++j) {
                    sums[j][r] += x[0] * words[j].x;
                    sums[j][r] += x[1] * words[j].y;
                    sums[j][r] += x[2] * words[j].z;
                    sums[j][r] += x[3] * words[j].w;
                }
            }
        }
    });
#pragma unroll
    for (int j = 0; j < LINES; ++j)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float sum = sums[j][r];
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, apart);
            if (lane == (j * ROWS + r) % 32 && j < lines && r < s.rows)
                store_element(s.c + r * s.down + (first + j) * s.over, alpha, sum, beta);
        }
}

template <int ROWS, int LINES, int WARPS, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(32 * WARPS)
batched_rows(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    const __grid_constant__ BatchAxes axes)
{
    const int depth = sum_depth(K, alpha);
    specialize(M <= N, [&](auto by_rows) {
        constexpr bool ALONG_K = decltype(by_rows)() ? TRANS_B : !TRANS_A;  // of the wide matrix
        const int narrow = by_rows ? M : N, width = by_rows ? N : M;
        const unsigned groups = ceil_div(width, ALONG_K ? WARPS * LINES : 128), strips = ceil_div(narrow, ROWS);
        const unsigned at = blockIdx.x % (groups * strips);
        const unsigned product = blockIdx.x / (groups * strips);
        A += way_to_product<0>(product, axes);
        B += way_to_product<1>(product, axes);
        C += way_to_product<2>(product, axes);
        const int row = at % strips * ROWS;  // strips of the same columns are neighbours
        Strip s;
        s.row = by_rows ? (TRANS_A ? 1 : lda) : (TRANS_B ? ldb : 1);
        s.step = by_rows ? (TRANS_A ? lda : 1) : (TRANS_B ? 1 : ldb);
        s.narrow = (by_rows ? A : B) + row * s.row;
        s.wide = by_rows ? B : A;
        s.ld = by_rows ? ldb : lda;
        s.width = width;
        s.down = by_rows ? ldc : 1;
        s.over = by_rows ? 1 : ldc;
        s.c = C + row * s.down;
        s.rows = narrow - row;
        s.depth = depth;
        if constexpr (ALONG_K) multiply_along_k<ROWS, LINES, WARPS>(s, at / strips, alpha, beta);
        else multiply_across_k<ROWS, WARPS>(s, at / strips, alpha, beta);
    });
}
