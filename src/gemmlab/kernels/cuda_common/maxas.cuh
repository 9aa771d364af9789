// The Maxwell design of SGEMM: a tile of W x W by (W / 8)^2 threads, 64 x 64 by 64 or 128 x 128 by 256.
//
// One barrier a k-block: while one buffer is read, the pieces of the next k-block arrive in registers, and are put into
// the other buffer as late as can be. Fragments are read a step ahead, across the barrier too.
//
//     k-block    fetch ->  ...............  -> put | barrier
//                step 0   1   2   3   4   5   6    |   7    of 8: step 7 is computed behind the barrier, while
//                read 1   2   3   4   5   6   7    |   0'   step 0 of the next k-block is read
#pragma once

#include "epilogue.cuh"
#include "fragment.cuh"
#include "lane_map.cuh"
#include "maxas_share.cuh"
#include "quarters.cuh"
#include "tile.cuh"

template <int W, int BK, bool SPLIT, int LANE_MAP>
struct MaxasTile {
    static constexpr unsigned BUFFER = sizeof(float) * 2 * W * BK;  // bytes
    // The first quarters of a warp's 4 x 8 lanes are 16 x 32 results; the other quarters lie W / 2 below and beside.
    static constexpr int WARPS_N = W / 64;
    static_assert((BUFFER & (BUFFER - 1)) == 0 && BK % 2 == 0, "buffers are swapped by XOR, and fragments alternate");

    const int lane, warp;
    const LanePlace place;  // of the lane in its warp
    const int row, col;     // of the warp in the block's tile, [0, W / 2)
    float sums[8][8] = {};

    __device__ __forceinline__ MaxasTile()
        : lane(threadIdx.x % 32),
          warp(threadIdx.x / 32),
          place(lane_place<LANE_MAP, 4, 8>()),
          row(warp / WARPS_N * 16),
          col(warp % WARPS_N * 32)
    {
    }

    // `shared` has two buffers. Returns the one that nobody reads any more, though warps may still be at work.
    template <int BY>
    __device__ __forceinline__ float* multiply(float* shared, const Panel& A, const Panel& B, int depth)
    {
        const int missing = (BK - depth % BK) % BK;
        unsigned read_a = sizeof(float) * (row + place.row), read_b = sizeof(float) * (W * BK + col + place.col);
        float a_frag[2][8], b_frag[2][8];  // of step k in [k % 2]
        const auto read_step = [&](int k) {
            load_parts<W / 2>(a_frag[k % 2], at_byte(shared, read_a) + k * W);
            load_parts<W / 2>(b_frag[k % 2], at_byte(shared, read_b) + k * W);
        };

        Shares<W, BK, BY, SPLIT> next(A, B, missing);
        next.fetch(true, missing);
        next.put(shared);
        __syncthreads();
        read_step(0);
        for (unsigned left = ceil_div(depth, BK);; --left) {
            const bool more = left > 1;
            next.advance();
            next.swap(BUFFER);
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read_step(k + 1);
                if (k == 0) next.fetch(more);
                if (k == BK - 2 && more) next.put(shared);  // as late as can be
                add_outer_product(sums, a_frag[k % 2], b_frag[k % 2]);
            }
            if (!more) break;
            __syncthreads();
            read_a ^= BUFFER;
            read_b ^= BUFFER;
            read_step(0);
            add_outer_product(sums, a_frag[1], b_frag[1]);
        }
        add_outer_product(sums, a_frag[1], b_frag[1]);
        return at_byte(shared, ~read_a & BUFFER);
    }

    // Each thread writes its own 4 x 4. `c` is the tile's first element; C has `rows` and `cols` from there on.
    __device__ __forceinline__ void store_quarters(float* c, int ldc, int rows, int cols, float alpha, float beta) const
    {
        const int r = row + place.row, s = col + place.col;
        store_parts<W / 2, W / 2>(
            c + r * static_cast<Offset>(ldc) + s, ldc, rows - r, cols - s, rows_are_aligned(c, ldc), alpha, sums, beta);
    }

    // The same by way of shared memory, 256 words a warp and only for itself. In each of eight turns a warp has four
    // rows of 2 x 32 results, four neighbours a lane, and turns them so that 32 lanes hold 32 neighbours:
    //
    //      row    0..3 of the lanes' rows        a store of the warp: 32 lanes, 128 bytes, 4 sectors
    //      0     [l0  ][l1  ]  ...  [l7  ]        0 1 2 3 4 5  ...  31
    //      1     [l8  ][l9  ]  ...  [l15 ]        0 1 2 3 4 5  ...  31      (lanes as in a scan)
    //
    // Every second row is moved by 16 banks, because in z-order eight lanes that write together have two rows.
    __device__ __forceinline__ void store_rows(
        float* shared, float* c, int ldc, int rows, int cols, float alpha, float beta) const
    {
        float* const turning = shared + warp * 256;
        const auto swizzled = [](int r, int s) { return r * 64 + (s ^ r % 2 * 16); };
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            __syncwarp();  // the turn before has been read
#pragma unroll
            for (int part = 0; part < 2; ++part)
                *reinterpret_cast<float4*>(turning + swizzled(place.row / 4, 32 * part + place.col)) = make_float4(
                    sums[i][4 * part], sums[i][4 * part + 1], sums[i][4 * part + 2], sums[i][4 * part + 3]);
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int r = row + j / 2 * 4 + i % 4 + i / 4 * (W / 2), s = col + lane + j % 2 * (W / 2);
                if (r < rows && s < cols)
                    store_element(
                        c + r * static_cast<Offset>(ldc) + s, alpha, turning[swizzled(j / 2, j % 2 * 32 + lane)], beta);
            }
        }
    }
};

// C's tile of the block; `A_tex` and `B_tex` as the kernel was given them, or 0 where textures are not wanted.
template <int W, int BK, bool SPLIT, int LANE_MAP, bool COALESCE, bool TRANS_A, bool TRANS_B>
__device__ __forceinline__ void maxas(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    cudaTextureObject_t A_tex, cudaTextureObject_t B_tex)
{
    using MaxasBlock = MaxasTile<W, BK, SPLIT, LANE_MAP>;
    __shared__ __align__(16) float shared[2 * MaxasBlock::BUFFER / sizeof(float)];

    const Tile tile = tile_of_block<W, W>(N);
    const int rows = M - tile.row, cols = N - tile.col;  // of C from this tile on
    const Panel a = {A, A_tex, TRANS_A ? tile.row : tile.row * static_cast<Offset>(lda), lda, rows, !TRANS_A};
    const Panel b = {B, B_tex, TRANS_B ? tile.col * static_cast<Offset>(ldb) : tile.col, ldb, cols, TRANS_B};

    MaxasBlock block;
    float* unread = shared;
    if (const int depth = sum_depth(K, alpha)) {
        if (!a.in_fours<W>(depth) || !b.in_fours<W>(depth)) unread = block.multiply<BY_FLOAT>(shared, a, b, depth);
        else if (A_tex == 0 || B_tex == 0) unread = block.multiply<BY_FOUR>(shared, a, b, depth);
        else unread = block.multiply<BY_TEXEL>(shared, a, b, depth);
    }
    C += tile.row * static_cast<Offset>(ldc) + tile.col;
    if (COALESCE) block.store_rows(unread, C, ldc, rows, cols, alpha, beta);
    else block.store_quarters(C, ldc, rows, cols, alpha, beta);
}
