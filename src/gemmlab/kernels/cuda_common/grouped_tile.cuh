// A tile of C and the threads that compute it: one group, or several that share the terms of each block of k.
//
// A block of k in shared memory, KGROUPS = 4 and BK = 32, and what becomes of the sums:
//
//     k    0 ..  7    group 0 multiplies these for all BM x BN results       all groups leave their sums in shared
//          8 .. 15    group 1                                                memory; then group g adds up rows
//         16 .. 23    group 2                                                g * TM / 4 and on of each thread's TM:
//         24 .. 31    group 3                                                every thread ends with TM / 4 x TN
//
// So a small tile keeps many warps busy, with as many results a thread as a large tile has. That saves reads of shared
// memory: 8 x 8 results a thread read half as many words for each product as 4 x 4.
//
#pragma once

#include "epilogue.cuh"
#include "lane_map.cuh"
#include "parts.cuh"
#include "pieces.cuh"
#include "tile.cuh"

// What a block reads: A from the first row of its tile on, and B from the first column; so many of them exist.
struct TileOperands {
    const float* a;
    int lda, rows;
    const float* b;
    int ldb, cols;
    int depth;  // terms of each sum
};

// Some of the blocks of k, counted from 0. The ragged one is the first of all (see pieces.cuh).
struct BlocksOfK {
    unsigned first;
    unsigned count;
};

template <int BM, int BN, int BLOCK_K, int TM, int TN, int KGROUPS, bool TRANS_A, bool TRANS_B>
struct GroupedTile {
    static constexpr int BK = BLOCK_K;
    static constexpr int GROUP = (BM / TM) * (BN / TN);  // threads of a group
    static constexpr int THREADS = KGROUPS * GROUP;
    static constexpr int STEPS = BK / KGROUPS;           // of a group in a block of k
    static constexpr int LANES_M = TM > TN || BM < 8 * TM ? 4 : 8, LANES_N = 32 / LANES_M;  // of a warp
    static constexpr int APART_M = 4 * LANES_M, APART_N = 4 * LANES_N;                      // between quarters
    static constexpr int WARPS_N = BN / (LANES_N * TN);                                     // beside each other
    static constexpr int ROWS = TM / KGROUPS;  // of TN results that a thread ends up with
    static_assert(STEPS % 2 == 0 && TM % KGROUPS == 0, "groups share k and rows evenly");

    // What must be turned comes float by float; it may lie anywhere.
    template <bool FOURS>
    using APieces = Pieces<BM, BK, THREADS, !TRANS_A, TRANS_A && FOURS ? 4 : 1>;
    template <bool FOURS>
    using BPieces = Pieces<BN, BK, THREADS, TRANS_B, !TRANS_B && FOURS ? 4 : 1>;

    const int thread = threadIdx.x % GROUP;  // [0, GROUP)
    const int group = threadIdx.x / GROUP;   // [0, KGROUPS)
    LanePlace at;                            // the thread's first quarter in the tile: [0, BM), [0, BN)

    __device__ __forceinline__ GroupedTile() : at(lane_place<Z_ORDER, LANES_M, LANES_N>())
    {
        at.row += thread / 32 / WARPS_N * LANES_M * TM;
        at.col += thread / 32 % WARPS_N * LANES_N * TN;
    }

    // Whether what need not be turned can come as float4.
    static __device__ __forceinline__ bool in_fours(const TileOperands& x)
    {
        return (!TRANS_A || APieces<true>::in_fours(x.a, x.lda, x.rows, x.depth)) &&
               (TRANS_B || BPieces<true>::in_fours(x.b, x.ldb, x.cols, x.depth));
    }

    // The pieces of A and B that a thread brings, one block of k of a range after the other.
    template <bool FOURS>
    struct Feed {
        int missing;  // terms that the first of the range lacks
        APieces<FOURS> a;
        BPieces<FOURS> b;

        __device__ __forceinline__ Feed(const TileOperands& x, BlocksOfK range)
            : Feed(x, range.first == 0 ? 0 : static_cast<int>(range.first * BK) - lacking(x),
                   range.first == 0 ? lacking(x) : 0)
        {
        }

    private:
        static __device__ __forceinline__ int lacking(const TileOperands& x) { return (BK - x.depth % BK) % BK; }
        __device__ __forceinline__ Feed(const TileOperands& x, int k, int missing)
            : missing(missing), a(x.a + (TRANS_A ? k * static_cast<Offset>(x.lda) : k), x.lda, x.rows, missing),
              b(x.b + (TRANS_B ? k : k * static_cast<Offset>(x.ldb)), x.ldb, x.cols, missing)
        {
        }
    };

    // Adds up all groups' sums; each group gets its share of the rows. Every thread of the block calls this.
    __device__ __forceinline__ void
    share_groups(float (&share)[ROWS][TN], const float (&sums)[TM][TN], float* shared) const
    {
        if constexpr (KGROUPS == 1) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) share[i][j] = sums[i][j];
            return;
        }
        const auto four_of = [&](int group, int row, int j) {
            return reinterpret_cast<float4*>(shared) + ((group * TM + row) * (TN / 4) + j / 4) * GROUP + thread;
        };
        __syncthreads();  // nobody reads tiles any more
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *four_of(group, i, j) = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                float4 of_group[KGROUPS];
#pragma unroll
                for (int g = 0; g < KGROUPS; ++g) of_group[g] = *four_of(g, group * ROWS + i, j);
                const float4 sum = add_in_pairs(of_group);
                share[i][j] = sum.x;
                share[i][j + 1] = sum.y;
                share[i][j + 2] = sum.z;
                share[i][j + 3] = sum.w;
            }
    }

    // Where a thread stores its share, four results at a time.
    struct Store {
        const GroupedTile& shape;
        float* c;  // the first element of the tile; rows x cols exist from there on
        int ldc, rows, cols;
        float alpha, beta;
        float* shared;  // free; where rows of C are not aligned, six words a thread are used

        // The four numbered i are number i % (TN / 4) of line i / (TN / 4) of the share.
        __device__ __forceinline__ void operator()(int i, float4 sum) const
        {
            // Rounded here, alpha * sum cannot become part of a multiply-add: all tiles have the same bits.
            sum = make_float4(
                __fmul_rn(alpha, sum.x), __fmul_rn(alpha, sum.y), __fmul_rn(alpha, sum.z), __fmul_rn(alpha, sum.w));
            const int line = shape.group * ROWS + i / (TN / 4);  // [0, TM)
            const int row = line / 4 * APART_M + line % 4 + shape.at.row, col = i % (TN / 4) * APART_N + shape.at.col;
            if (rows_are_aligned(c, ldc)) {
                const float four[4] = {sum.x, sum.y, sum.z, sum.w};
                if (row < rows)
                    store_row(c + row * static_cast<Offset>(ldc) + col, cols - col, true, 1.0f, four, beta);
            } else {
                store_turned_four(row, col, sum);
            }
        }

    private:
        // Neighbouring lanes store neighbouring columns, by way of shared memory: 32 floats of a row are 4 or 5
        // sectors, where 32 lanes with four neighbours each would touch 16 and more, four times. Rows of the warp's
        // patch are moved by 8 or 16 banks, so that the eight lanes that write together (lane_map.cuh) meet in none.
        __device__ __forceinline__ void store_turned_four(int row, int col, float4 sum) const
        {
            constexpr int LD = APART_N + (LANES_M == 4 ? 16 : 8);
            static_assert(LANES_M * LD == 6 * 32, "a warp's patch is six words a thread");
            const LanePlace place = lane_place<Z_ORDER, LANES_M, LANES_N>();
            float* const patch = shared + threadIdx.x / 32 * (LANES_M * LD);
            __syncwarp();  // the four before has been read
            *reinterpret_cast<float4*>(patch + place.row / 4 * LD + place.col) = sum;
            __syncwarp();
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                const int at = turn * 32 + threadIdx.x % 32;  // of LANES_M rows, four apart in C, of APART_N columns
                const int r = row - place.row + at / APART_N * 4, s = col - place.col + at % APART_N;
                if (r < rows && s < cols)
                    store_element(
                        c + r * static_cast<Offset>(ldc) + s, 1.0f, patch[at / APART_N * LD + at % APART_N], beta);
            }
        }
    };
};
