/* gemmlab
summary = "the Maxwell design, 256 threads for 128 x 128: four warps load A and four B, through textures"
idea = "Half of the threads load A and half B, by 32-bit track pointers: a design for Maxwell, no gain on an H200."
source = "Chinese notes on SGEMM, the Maxwell assembler's walk-through: its 256-thread implementation"
op = "gemm"
after = ""
branch = true
arch = "sm_75"
transposes = ["tn", "nn", "nt", "tt"]
grid = "ceil_div(M, BM) * ceil_div(N, BN)"
threads = "BM * BN // 64"
require = [
    "BM == 128 and BN == 128 and BK == 8",
    "0 <= SPLIT <= 1 and 0 <= LANE_MAP <= 1 and 0 <= COALESCE <= 1 and 0 <= TEXTURE <= 1",
]
expect = [
    # 32 lanes fetch four floats each; nothing else reads A and B.
    "128 * texture_load_requests == M * N * K // BM + M * N * K // BN and global_load_requests == 0",
    { config = { TEXTURE = 0 }, that = "128 * global_load_requests == M * N * K // BM + M * N * K // BN" },
    { config = { TEXTURE = 0 }, that = "executed_TLD == 0 and global_load_requests <= executed_LDG_128" },
    { shape = "128x256x72", config = { SPLIT = 0 }, that = "128 * texture_load_requests == M * N * K // 64" },
    "shared_load_excess == 0 and shared_store_excess == 0",
    { config = { COALESCE = 0 }, that = "shared_load_wavefronts == 2 * executed_LDS_128" },
    { config = { COALESCE = 0, LANE_MAP = 0 }, that = "shared_load_wavefronts == 3 * executed_LDS_128" },
    # Warps store 32 neighbours, or 8 times 4 in each of four rows.
    "global_store_sectors_per_request == 4 and 32 * global_store_requests == M * N",
    { config = { COALESCE = 0 }, that = "global_store_sectors_per_request == 16 and executed_STG_128 == M * N // 128" },
    # A warp has 32 * 64 results.
    { shape = "128x256x72", that = "2048 * barriers == M * N * ceil_div(K, BK)" },
]

[params]
BM = 128
BN = 128
BK = 8
SPLIT = 1     # 1 half of the threads load A and half B, 0 all load both
LANE_MAP = 1  # 1 z-order, 0 a scan: lanes row after row
COALESCE = 1  # 1 C is turned in shared memory so that a warp stores 32 neighbours, 0 each thread stores its 4 x 4
TEXTURE = 1   # 1 by texture fetches where there are textures, 0 by LDG
# -DHALF=1 is none of these: A and B are then halves, which the operation gemm does not have (stored.cuh).

[tune]
SPLIT = [0, 1]
LANE_MAP = [0, 1]
COALESCE = [0, 1]
TEXTURE = [0, 1]
*/

#include "epilogue.cuh"
#include "lane_map.cuh"
#include "maxas_share.cuh"
#include "quarters.cuh"
#include "stored.cuh"
#include "tile.cuh"

//   who loads                                      who computes: eight warps, 16 x 32 first quarters each
//
//     warps 0-3   A, 8 x 128: two float4 a lane             0       32      64              127
//     warps 4-7   B, 8 x 128: two float4 a lane         0  [w0    ][w1    ]|w0     |w1     |
//                                                      16  [w2    ][w3    ]|w2     |w3     |    a lane has 4 x 4 in
//   track 0       rows 0 .. 3 of the tile              32  [w4    ][w5    ]|w4     |w5     |    each of the four
//   track 1       rows 4 .. 7                          48  [w6    ][w7    ]|w6     |w7     |    quarters of the tile
//                                                      64   w0      w1     |w0     |w1     |
//                                                       :
// Two tracks and 8 words on their way instead of four and 16: this fits 128 registers, so that two blocks, 16 warps,
// are resident on an SM. A block reads half as much for each result as one of 64 x 64 does.
//
// One barrier a k-block: while one buffer is read, the pieces of the next k-block arrive in registers, and are put into
// the other buffer as late as can be. Fragments are read a step ahead, across the barrier too. The buffers are a power
// of two apart, and swapped by an XOR.
//
//     k-block    fetch ->  ...............  -> put | barrier             bytes   0    | As, Bs |
//                step 0   1   2   3   4   5   6    |   7    of 8                BUFFER| As, Bs |
//                read 1   2   3   4   5   6   7    |   0'   of the next
template <
    int BM, int BN, int BK, int SPLIT, int LANE_MAP, int COALESCE, int TEXTURE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(BM * BN / 64, 2) maxas_256(
    int M, int N, int K, float alpha, const Stored* A, int lda, const Stored* B, int ldb, float beta, float* C, int ldc,
    cudaTextureObject_t A_tex, cudaTextureObject_t B_tex)
{
    constexpr int W = BM;                                    // and BN
    constexpr int LOADERS = BM * BN / 64 / (SPLIT ? 2 : 1);  // threads that bring a tile of A; as many, one of B
    constexpr unsigned BUFFER = sizeof(float) * 2 * W * BK;  // bytes of a tile of A and one of B
    static_assert((BUFFER & (BUFFER - 1)) == 0 && BK % 2 == 0, "buffers are swapped by XOR, and fragments alternate");
    __shared__ __align__(16) float shared[2 * BUFFER / sizeof(float)];

    const Tile tile = tile_of_block<W, W>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const Offset first_a = TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    const Offset first_b = TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;
    const Panel a = {A, TEXTURE ? A_tex : 0, first_a, lda, rows, !TRANS_A};
    const Panel b = {B, TEXTURE ? B_tex : 0, first_b, ldb, cols, TRANS_B};

    // The first quarters of a warp's 4 x 8 lanes are 16 x 32 results; the other quarters lie W / 2 below and beside.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const LanePlace place = lane_place<LANE_MAP, 4, 8>();
    const int row = warp / (W / 64) * 16, col = warp % (W / 64) * 32;  // of the warp in the block's tile, [0, W / 2)

    float sums[8][8] = {};
    const int depth = sum_depth(K, alpha);
    float* unread = shared;  // in the end the buffer that nobody reads any more

    // The product, with pieces that are read By float, four or texel.
    const auto product = [&](auto by) {
        using By = decltype(by);
        const int missing = (BK - depth % BK) % BK;  // terms that the first k-block lacks
        const bool second = SPLIT && threadIdx.x >= LOADERS;  // the upper half of the threads brings B
        Share<W, BK, LOADERS, By> mine(SPLIT ? either<By>(second, a, b) : a, threadIdx.x % LOADERS, missing);
        Share<W, BK, LOADERS, By> other(b, threadIdx.x % LOADERS, missing);  // without SPLIT
        float4 my_next[mine.COUNT], other_next[mine.COUNT];                  // on their way
        unsigned write_mine = sizeof(float) * ((second ? W * BK : 0) + mine.word());  // bytes
        unsigned write_other = sizeof(float) * (W * BK + other.word());
        const auto fetch_one = [&](const auto& share, auto& next, bool wanted, int missing) {
#pragma unroll
            for (int i = 0; i < share.COUNT; ++i) {
                if constexpr (is<By, ByFloat>) {
                    if (wanted) next[i] = share.load_inside(i, missing);
                } else if (missing > 0 && share.before(i, missing) > 0) {
                    next[i] = float4{};
                } else if (wanted) {
                    if constexpr (is<By, ByTexel>) next[i] = tex1Dfetch<float4>(share.texture, share.track[i]);
                    else next[i] = load_whole_four(share.track[i]);
                }
            }
        };
        const auto put_one = [&](const auto& share, const auto& next, unsigned write) {
            float* const dst = at_byte(shared, write);
#pragma unroll
            for (int i = 0; i < share.COUNT; ++i) {
                if (share.column[i]) put_four<true, W>(dst + share.word_step(true, i), next[i]);
                else put_four<false, W>(dst + share.word_step(false, i), next[i]);
            }
        };
        const auto fetch = [&](bool wanted, int missing) {
            fetch_one(mine, my_next, wanted, missing);
            if (!SPLIT) fetch_one(other, other_next, wanted, missing);
        };
        const auto put = [&] {
            put_one(mine, my_next, write_mine);
            if (!SPLIT) put_one(other, other_next, write_other);
        };
        const auto advance = [&] {
            mine.advance();
            if (!SPLIT) other.advance();
            write_mine ^= BUFFER;
            write_other ^= BUFFER;
        };

        unsigned read_a = sizeof(float) * (row + place.row), read_b = sizeof(float) * (W * BK + col + place.col);
        float a_frag[2][8], b_frag[2][8];  // of step k in [k % 2]
        const auto read = [&](int k) {
            load_parts<W / 2>(a_frag[k % 2], at_byte(shared, read_a) + k * W);
            load_parts<W / 2>(b_frag[k % 2], at_byte(shared, read_b) + k * W);
        };
        const auto multiply = [&](int k) {
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] += a_frag[k % 2][i] * b_frag[k % 2][j];
        };

        fetch(true, missing);
        put();
        __syncthreads();
        read(0);
        for (unsigned left = ceil_div(depth, BK);; --left) {
            const bool more = left > 1;
            advance();
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read(k + 1);
                if (k == 0) fetch(more, 0);
                if (k == BK - 2 && more) put();  // as late as can be
                multiply(k);
            }
            if (!more) break;
            __syncthreads();
            read_a ^= BUFFER;
            read_b ^= BUFFER;
            read(0);
            multiply(BK - 1);
        }
        multiply(BK - 1);
        unread = at_byte(shared, ~read_a & BUFFER);
    };
    if (depth > 0) {
        if (!a.in_fours<W>(depth) || !b.in_fours<W>(depth)) product(ByFloat());
        else if (a.texture == 0 || b.texture == 0) product(ByFour());
        else product(ByTexel());
    }

    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    if (COALESCE) {
        store_turned<W / 2>(unread + warp * 256, place, C, ldc, row, col, rows, cols, alpha, sums, beta);
    } else {
        const int r = row + place.row, s = col + place.col;
        store_parts<W / 2, W / 2>(
            C + r * static_cast<Offset>(ldc) + s, ldc, rows - r, cols - s, rows_are_aligned(C, ldc), alpha, sums, beta);
    }
}
