/* gemmlab
summary = "each block multiplies a part of k for its tile; the last block of a tile adds the parts"
idea = "Tiles times parts of k fill the GPU where tiles alone do not, and no block waits for another."
source = "CUTLASS: split-K and sliced-K; a last block that goes on, from CUDA's sample threadFenceReduction"
op = "gemm"
after = "async_copy"
branch = true
arch = "sm_80"
transposes = ["nn", "nt", "tn", "tt"]
grid = ["ceil_div(M, BM) * ceil_div(N, BN)", "min(SPLITS, max(1, ceil_div(K, BK)))"]
threads = "KGROUPS * (BM // TM) * (BN // TN)"
smem_bytes = "4 * max(STAGES * BK * (BM + BN + 8), BM * BN * KGROUPS if KGROUPS > 1 else 0)"
workspace = "4 * BM * BN * blocks if min(SPLITS, ceil_div(K, BK)) > 1 else 0"
tickets = "ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(min(SPLITS, max(1, ceil_div(K, BK))), FAN // 2)"
require = [
    "4 <= TM <= 16 and 4 <= TN <= 8 and TM & TM - 1 == 0 and TN & TN - 1 == 0",
    "min(BM, BN) >= 32 and BM & BM - 1 == 0 and BN & BN - 1 == 0 and BM * BN <= 32768",
    "BM % (TM * (4 if TM > TN or BM < 8 * TM else 8)) == 0",  # warps of 4 x 8 or 8 x 4
    "BN % (TN * (8 if TM > TN or BM < 8 * TM else 4)) == 0",
    "1 <= KGROUPS <= TM and KGROUPS & KGROUPS - 1 == 0 and BK % (2 * KGROUPS) == 0 and 1 <= SPREAD < BK // KGROUPS",
    "KGROUPS * (BM // TM) * (BN // TN) <= 8 * min(BM, BN)",                               # pieces a thread
    "BK % 8 == 0 and KGROUPS * (BM // TM) * (BN // TN) <= BK * min(BM, BN) // 4",         # float4 a thread
    "2 <= STAGES <= 6 and STAGES * BK * (BM + BN + 8) >= 10 * (BM // TM) * (BN // TN)",   # room to turn results
    "4 * max(STAGES * BK * (BM + BN + 8), BM * BN * KGROUPS if KGROUPS > 1 else 0) <= 101376",
    "1 <= SPLITS <= 1024 and 4 <= FAN <= 16 and FAN & FAN - 1 == 0",
]
expect = [
    # Every block takes one ticket; its part is written once and read once by the block that adds. C is the last write.
    { shape = "64x64x256", that = "global_atomic_requests == SPLITS" },
    { shape = "64x64x256", that = "128 * global_store_requests == M * N * (SPLITS + 1)" },
    { shape = "64x64x256", that = "128 * global_load_requests == M * N * SPLITS" },
    # More parts than are added at a time: two levels, and what the first one leaves is read again by the second.
    { shape = "64x64x320", config = { SPLITS = 10 }, that = "global_atomic_requests == SPLITS + 2" },
    { shape = "64x64x320", config = { SPLITS = 10 }, that = "128 * global_load_requests == M * N * (SPLITS + 2)" },
    # One part: no tickets, no workspace. Parts beyond the blocks of k are not launched.
    { shape = "64x64x256", config = { SPLITS = 1 }, that = "global_atomic_requests == 0 and global_load_requests == 0" },
    { shape = "64x64x64", config = { SPLITS = 9 }, that = "global_atomic_requests == 2" },
    # Groups leave 8 x 8 sums a thread in shared memory, 16 bytes a lane, and meet no bank twice.
    { shape = "64x64x256", that = "128 * shared_store_requests == KGROUPS * SPLITS * M * N" },
    { shape = "64x64x256", that = "shared_load_excess == 0 and shared_store_excess == 0 and async_copy_excess == 0" },
    # Rows of C that are not aligned: 32 neighbours in 4 or 5 sectors, through shared memory.
    { shape = "64x63x64", config = { SPLITS = 1 }, that = "4 <= global_store_sectors_per_request <= 5" },
]

[params]
BM = 64
BN = 64
BK = 32
TM = 8
TN = 8
KGROUPS = 4  # groups of threads that share the k of a block
STAGES = 3
SPREAD = 4   # steps over which the copies of a block of k are spread
FAN = 8      # parts that are added at a time
SPLITS = 4   # parts of k, or as many as there are blocks of it

[tune]
BM = [32, 64, 128]
BN = [32, 64, 128]
KGROUPS = [1, 4]
SPLITS = [1, 2, 4, 8, 16, 32]
*/

#include "parts.cuh"
#include "residency.cuh"
#include "tile.cuh"
#include "tile_range.cuh"

//          k = 0                          K            blockIdx.x    a tile of C; neighbours share rows of A
//          [ part 0 | part 1 | part 2 | part 3 ]       blockIdx.y    a part of k, blocks of BK as evenly as possible
//   tile 0    x0       x4       x8      x12
//   tile 1    x1       x5       x9      x13            blocks in the order of their numbers: those that run at the
//   tile 2    x2       x6       x10     x14            same time work on the same part of k and share it in the
//   tile 3    x3       x7       x11     x15            level-2 cache
//
// A block that has its part leaves it in memory and takes a ticket; who takes the last of eight adds the eight, and who
// adds the last of all multiplies by alpha and stores (parts.cuh). Up to 8 parts that is one meeting, up to 64 two.
// Nobody waits, so blocks may run in any order, beside other kernels, and few at a time.
//
// Within a block, k is shared once more, by groups of threads whose sums meet in shared memory (tile_range.cuh): that
// costs far less than one more part in global memory.
template <
    int BM, int BN, int BK, int TM, int TN, int KGROUPS, int STAGES, int SPREAD, int FAN, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(
    KGROUPS * (BM / TM) * (BN / TN), resident_blocks(KGROUPS * BM, BN, BK, KGROUPS * (BM / TM) * (BN / TN)))
split_k(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets)
{
    using Range = TileRange<BM, BN, BK, TM, TN, KGROUPS, STAGES, SPREAD, TRANS_A, TRANS_B>;
    constexpr int COUNT = Range::ROWS * TN;          // sums of a thread
    extern __shared__ __align__(16) float shared[];  // STAGES tiles of A and B, then the groups' sums

    const unsigned part = blockIdx.y, parts = gridDim.y;
    const Tile tile = tile_of_block<BM, BN>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const int depth = sum_depth(K, alpha);
    A += TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda);
    B += TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col;

    const Range range;
    float sums[TM][TN] = {};
    const BlocksOfK own = blocks_of_part(ceil_div(depth, BK), part, parts);
    if (own.count > 0) range.multiply(sums, shared, {A, lda, rows, B, ldb, cols, depth}, own);
    float share[Range::ROWS][TN];
    range.share_groups(share, sums, shared);

    tickets += blockIdx.x * tickets_for<FAN>(parts);
    float* const left = static_cast<float*>(workspace) + blockIdx.x * static_cast<Offset>(parts) * (BM * BN);
    float(&flat)[COUNT] = reinterpret_cast<float(&)[COUNT]>(share);
    if (!join_parts<FAN, Range::THREADS>(flat, part, parts, tickets, left)) return;
    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    range.store(C, ldc, rows, cols, alpha, share, beta, shared);
}
