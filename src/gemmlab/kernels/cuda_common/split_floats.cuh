// The launch before a product of parts: it reads floats, looks for what parts would not hold, and stores their parts.
#pragma once

#include "split_operands.cuh"
#include "wgmma.cuh"

// The SPLIT_THREADS threads that split a piece: a block, or a warpgroup of a block with others.
struct SplitBlock {
    static __device__ __forceinline__ unsigned thread() { return threadIdx.x; }
    static __device__ __forceinline__ void meet() { __syncthreads(); }
};

// Splits 64 rows x 128 of k. `unit` counts these pieces of the operand; element (row, k) lies at X[row * ld + k], or at
// X[k * ld + row] with ACROSS. Shared memory takes an image of the piece, and 4 KB. JUDGE: its verdicts are not known yet.
template <bool ACROSS, bool JUDGE, class Team, class Format, int STRIP>
__device__ __forceinline__ void split_piece(
    const SplitOperand<Format, STRIP>& to, unsigned unit, const float* X, int ld, int rows, int depth, char* image)
{
    using Operand = SplitOperand<Format, STRIP>;
    constexpr int PARTS = Format::PARTS, WARPS = SPLIT_THREADS / 32, PIECE_BYTES = SPLIT_ROWS * 128;
    // Behind the image, what warps tell each other about a row.
    using Words = unsigned(*)[SPLIT_ROWS];
    const Words largest_of = reinterpret_cast<Words>(image + 2 * PARTS * PIECE_BYTES);
    const Words least_of = largest_of + WARPS, counts_of = least_of + WARPS;
    const int lane = Team::thread() % 32, warp = Team::thread() / 32;
    const unsigned pieces = to.strips * Operand::UNITS;
    const unsigned piece = ACROSS ? unit % pieces : unit / to.blocks, block = ACROSS ? unit / pieces : unit % to.blocks;
    const int first_row = static_cast<int>(piece) * SPLIT_ROWS, first_k = static_cast<int>(block) * SPLIT_DEPTH;
    const int rows_left = rows - first_row, depth_left = min(depth - first_k, SPLIT_DEPTH);

    // What a thread holds: pairs along k of rows 16 w + i for ALONG, 32 neighbours along k of two rows for ACROSS.
    //     values[i][j]      ALONG: row 16 w + i, k = 2 l, 2 l + 1, 64 + 2 l, 65 + 2 l     ACROSS: row l + 32 i, k = 32 w + j
    constexpr int LINES = ACROSS ? 2 : 16, COUNT = ACROSS ? 32 : 4;
    float values[LINES][COUNT];
    const auto row_of = [&](int i) { return ACROSS ? lane + 32 * i : 16 * warp + i; };
    const auto k_of = [&](int j) { return ACROSS ? 32 * warp + j : 2 * lane + j % 2 + 64 * (j / 2); };
#pragma unroll
    for (int j = 0; j < COUNT; ++j)
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            const int row = row_of(i), k = k_of(j);
            const Offset at = ACROSS ? (first_k + k) * static_cast<Offset>(ld) + first_row + row
                                     : (first_row + row) * static_cast<Offset>(ld) + first_k + k;
            values[i][j] = row < rows_left && k < depth_left ? X[at] : 0.0f;
        }

    unsigned largest[LINES], least[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        largest[i] = 0;
        least[i] = 0xffffffff;  // the least that is not zero, minus 1
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
            largest[i] = max(largest[i], magnitude(values[i][j]));
            least[i] = min(least[i], magnitude(values[i][j]) - 1);  // of a zero, the largest number
        }
        if constexpr (ACROSS) {
            largest_of[warp][row_of(i)] = largest[i];
            least_of[warp][row_of(i)] = least[i];
        } else {
            largest[i] = __reduce_max_sync(0xffffffff, largest[i]);
            least[i] = __reduce_min_sync(0xffffffff, least[i]);
        }
    }
    Team::meet();
    if constexpr (ACROSS)
#pragma unroll
        for (int i = 0; i < LINES; ++i)
#pragma unroll
            for (int other = 0; other < WARPS; ++other) {
                largest[i] = max(largest[i], largest_of[other][row_of(i)]);
                least[i] = min(least[i], least_of[other][row_of(i)]);
            }

    if constexpr (JUDGE) {
        // How many elements of a row are below 2^-12 of the largest, and how many are zero: two counts in one word.
        unsigned usual = 0, every = 0;
        const auto judge = [&](int i, unsigned counts) {
            const unsigned exponent = largest[i] >> 23, least_exponent = least[i] >> 23, count = depth_left;
            if (largest[i] == 0) return;  // all are zero, and exact
            unsigned bits = 0;
            if (exponent < LEAST_EXPONENT || exponent > MOST_EXPONENT) bits |= UNFIT;
            if (exponent - least_exponent > 27) bits |= WIDE;
            if (exponent - least_exponent > 100) bits |= WIDER;
            if (4 * (counts & 0xffff) > count) bits |= SMALL;
            if (4 * (counts >> 16) > 3 * count) bits |= THIN;
            every |= bits;
            if (halves_suit(bits)) usual |= bits;
            else if (ACROSS ? warp == 0 : lane == 0) to.verdicts.list(first_row + row_of(i));
        };
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            const unsigned limit = largest[i] - min(largest[i], 12u << 23);
            unsigned counts = 0;
#pragma unroll
            for (int j = 0; j < COUNT; ++j) {
                const unsigned size = magnitude(values[i][j]);
                if (k_of(j) < depth_left) counts += (size < limit) + (size == 0 ? 1 << 16 : 0);
            }
            if constexpr (ACROSS)
                counts_of[warp][row_of(i)] = counts;
            else
                judge(i, __reduce_add_sync(0xffffffff, counts));
        }
        if constexpr (ACROSS) {
            Team::meet();
#pragma unroll
            for (int i = 0; i < LINES; ++i) {
                unsigned counts = 0;
#pragma unroll
                for (int other = 0; other < WARPS; ++other) counts += counts_of[other][row_of(i)];
                judge(i, counts);
            }
        }
        usual = __reduce_or_sync(0xffffffff, usual);
        every = __reduce_or_sync(0xffffffff, every);
        if (lane == 0) to.verdicts.add(piece / Operand::UNITS, usual, every);
    }

    // The image: [64 of k][part][64 rows][64 halves]. Units of 16 bytes are swizzled, so neither way has conflicts.
    const auto unit_at = [&](int half, int part, int row, int of_row) {
        return image + ((half * PARTS + part) * SPLIT_ROWS + row) * 128 + (of_row ^ row % 8) * 16;
    };
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        const Scale scale = scale_for<Format::TOP>(largest[i]);
        const int row = row_of(i);
        constexpr int WIDTH = ACROSS ? 8 : 2;  // neighbours along k that are stored at a time
#pragma unroll
        for (int j = 0; j < COUNT; j += WIDTH) {
            unsigned pairs[PARTS][WIDTH / 2];
#pragma unroll
            for (int two = 0; two < WIDTH; two += 2) {
                unsigned short first[PARTS], second[PARTS];
                Format::split(values[i][j + two] * scale.down, first);
                Format::split(values[i][j + two + 1] * scale.down, second);
#pragma unroll
                for (int part = 0; part < PARTS; ++part)
                    pairs[part][two / 2] = first[part] | static_cast<unsigned>(second[part]) << 16;
            }
            const int k = k_of(j);
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                char* const there = unit_at(k / 64, part, row, k % 64 / 8);
                if constexpr (ACROSS)
                    *reinterpret_cast<uint4*>(there) =
                        make_uint4(pairs[part][0], pairs[part][1], pairs[part][2], pairs[part][3]);
                else
                    *reinterpret_cast<unsigned*>(there + k % 8 * 2) = pairs[part][0];
            }
        }
        const unsigned in_strip = piece % Operand::UNITS * SPLIT_ROWS + row;
        const Offset cell = static_cast<Offset>(piece / Operand::UNITS) * to.blocks + block;
        if (ACROSS ? warp == 0 : lane == 0) to.scales[cell * STRIP + in_strip] = scale.up;
    }
    publish_to_copies();
    Team::meet();
    if (Team::thread() == 0) {
        const unsigned strip = piece / Operand::UNITS, of_strip = piece % Operand::UNITS;
        for (int half = 0; half < 2; ++half)
            for (int part = 0; part < PARTS; ++part)
                store_bulk(
                    const_cast<char*>(to.stage(strip, block, half)) + part * Operand::PART_BYTES + of_strip * PIECE_BYTES,
                    shared_address(image) + (half * PARTS + part) * PIECE_BYTES, PIECE_BYTES);
        commit_stores();
        wait_until_read();
    }
}

// Splits piece `unit` of both operands, those of A first.
template <bool TRANS_A, bool TRANS_B, bool JUDGE = true, class Team = SplitBlock, class Format, int BM, int BN>
__device__ __forceinline__ void split_operands(
    const SplitProduct<Format, BM, BN>& parts, unsigned unit, const float* A, int lda, const float* B, int ldb, int M,
    int N, int depth, char* image)
{
    if (unit < parts.a.units())
        split_piece<TRANS_A, JUDGE, Team>(parts.a, unit, A, lda, M, depth, image);
    else
        split_piece<!TRANS_B, JUDGE, Team>(parts.b, unit - parts.a.units(), B, ldb, N, depth, image);
}
