// The launch before a product of parts: it reads floats, looks for what parts would not hold, and stores their parts.
//
// A piece of 64 rows x 128 of k passes through shared memory: floats come as they lie in memory, and leave as parts.
//
//     image     [64 of k][part][64 rows][64 halves]     16-byte units of a row swizzled (split_operands.cuh)
//     floats    [64 rows][128 of k], or [128 of k][64 rows] with ACROSS, where k goes across contiguous elements
//     told      what the two threads of a row tell each other, with ACROSS
//
// A block of the launch that splits does this once, and its code is in no cache, so it takes as long to fetch as to
// execute. Hence short loops that read shared memory: unrolled, with a thread's 64 floats in registers, they took 1.2 to
// 2.5 times as long, by layout.
#pragma once

#include "async_tile.cuh"
#include "row_facts.cuh"
#include "split_operands.cuh"
#include "wgmma.cuh"

constexpr int PIECE_BYTES = SPLIT_ROWS * 128;  // of a part of 64 of k
constexpr int TOLD = 5;                        // words that a thread tells of a row

// The shared memory that splits a piece: 68,096 bytes for two halves, 84,480 for three bfloat16.
template <class Format>
constexpr int SPLIT_BYTES = 2 * Format::PARTS * PIECE_BYTES + 4 * SPLIT_ROWS * SPLIT_DEPTH + 4 * TOLD * 2 * SPLIT_ROWS;

// The SPLIT_THREADS threads that split a piece: a block, or a warpgroup of a block with others.
struct SplitBlock {
    static __device__ __forceinline__ unsigned thread() { return threadIdx.x; }
    static __device__ __forceinline__ void meet() { __syncthreads(); }
};

// Copies a piece that begins at X, with zeros for what does not exist.
template <bool ACROSS, class Team>
__device__ __forceinline__ void
copy_floats(float* floats, const float* X, int ld, int rows_left, int depth_left)
{
    constexpr int LENGTH = ACROSS ? SPLIT_ROWS : SPLIT_DEPTH;  // of the lines that are contiguous in memory
    const int lines = ACROSS ? depth_left : rows_left, length = ACROSS ? rows_left : depth_left;
    // A thread copies the same columns of every n-th line.
    const auto for_lines = [&](int width, auto copy) {
        const int lines_at_once = width * SPLIT_THREADS / LENGTH;
        const int first = width * Team::thread() / LENGTH, at = width * Team::thread() % LENGTH;
        const int left = min(max(length - at, 0), width);
        const float* from = X + first * static_cast<Offset>(ld) + at;
#pragma unroll 4
        for (int line = first; line < SPLIT_ROWS * SPLIT_DEPTH / LENGTH; line += lines_at_once) {
            copy(floats + line * LENGTH + at, from, line < lines ? left : 0);
            from += lines_at_once * static_cast<Offset>(ld);
        }
    };
    if (ld % 4 == 0 && reinterpret_cast<unsigned long long>(X) % 16 == 0)
        for_lines(4, [](float* to, const float* from, int left) { copy_four_async(to, from, left); });
    else
        for_lines(1, [](float* to, const float* from, int left) { copy_one_async(to, from, left > 0); });
    commit_copies();
    wait_for_copies<0>();
    Team::meet();
}

// Stores the parts of COUNT scaled neighbours along k, 4 or 8, beginning at `k` of a row.
template <class Format, int COUNT>
__device__ __forceinline__ void store_parts(char* image, unsigned row, unsigned k, float scale, const float (&values)[COUNT])
{
    unsigned pairs[COUNT / 2][Format::PARTS];
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i) Format::split(values[2 * i] * scale, values[2 * i + 1] * scale, pairs[i]);
#pragma unroll
    for (int part = 0; part < Format::PARTS; ++part) {
        char* const of_row = image + ((k / 64 * Format::PARTS + part) * SPLIT_ROWS + row) * 128;
        char* const there = of_row + (k % 64 / 8 ^ row % 8) * 16 + k % 8 * 2;
        if constexpr (COUNT == 8)
            *reinterpret_cast<uint4*>(there) = make_uint4(pairs[0][part], pairs[1][part], pairs[2][part], pairs[3][part]);
        else
            *reinterpret_cast<uint2*>(there) = make_uint2(pairs[0][part], pairs[1][part]);
    }
}

// Both ways of splitting call `found(row, facts, scale)` once for each row, by one thread.

// Eight lanes have a row, and each of them four neighbours of every 32. A warp has four rows at a time, two with bit 2
// of their number clear and two with it set, so that the units of a row that half a warp stores are swizzled to different banks.
template <bool JUDGE, class Team, class Format, class Found>
__device__ __forceinline__ void split_along(const float* floats, char* image, const Found& found)
{
    const unsigned lane = Team::thread() % 32, warp = Team::thread() / 32;
    const auto of_row = [](auto join) {
#pragma unroll
        for (int apart = 1; apart < 8; apart *= 2) join(apart);
    };
    const auto other = [](unsigned mine, int apart) { return __shfl_xor_sync(0xffffffff, mine, apart); };
#pragma unroll 1
    for (unsigned turn = 0; turn < 4; ++turn) {
        const unsigned row = 16 * warp + turn / 2 * 8 + turn % 2 * 2 + lane / 16 + lane / 8 % 2 * 4;
        const unsigned first = lane % 8 * 4;  // along k
        float values[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(floats + row * SPLIT_DEPTH + 32 * i + first);
            values[i][0] = four.x, values[i][1] = four.y, values[i][2] = four.z, values[i][3] = four.w;
        }
        RowFacts facts;
        for (const auto& four : values) facts.see(four);
        of_row([&](int apart) {
            facts.largest = max(facts.largest, other(facts.largest, apart));
            facts.least = min(facts.least, other(facts.least, apart));
        });
        if (JUDGE && !__all_sync(0xffffffff, facts.is_plain())) {
            for (const auto& four : values) facts.count_small(four), facts.count_zeros(four);
            of_row([&](int apart) {
                facts.small += other(facts.small, apart);
                facts.zeros += other(facts.zeros, apart);
                facts.least_but_0 = min(facts.least_but_0, other(facts.least_but_0, apart));
            });
        }
        const Scale scale = scale_for<Format::TOP>(facts.largest);
#pragma unroll
        for (int i = 0; i < 4; ++i) store_parts<Format>(image, row, 32 * i + first, scale.down, values[i]);
        if (first == 0) found(row, facts, scale);
    }
}

// Two threads have a row, each 64 of k. It is read twice, since its scale must be known first.
template <bool JUDGE, class Team, class Format, class Found>
__device__ __forceinline__ void
split_across(const float* floats, char* image, unsigned (*told)[2][SPLIT_ROWS], const Found& found)
{
    const unsigned row = Team::thread() % SPLIT_ROWS, half = Team::thread() / SPLIT_ROWS;
    const auto for_eights = [&](auto look) {
#pragma unroll 1
        for (unsigned k = 64 * half; k < 64 * half + 64; k += 8) {
            float values[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) values[i] = floats[(k + i) * SPLIT_ROWS + row];
            look(k, values);
        }
    };
    // Tells the other thread of the row. What that has told can be read where the reference points, once all have met.
    const auto exchange = [&](int word, unsigned mine) -> const unsigned& {
        told[word][half][row] = mine;
        return told[word][1 - half][row];
    };
    RowFacts facts;
    for_eights([&](unsigned, const auto& values) { facts.see(values); });
    const unsigned &largest = exchange(0, facts.largest), &least = exchange(1, facts.least);
    Team::meet();
    facts.largest = max(facts.largest, largest);
    facts.least = min(facts.least, least);
    const Scale scale = scale_for<Format::TOP>(facts.largest);
    for_eights([&](unsigned k, const auto& values) {
        if constexpr (JUDGE) facts.count_small(values);
        store_parts<Format>(image, row, k, scale.down, values);
    });
    if constexpr (JUDGE) {
        if (__any_sync(0xffffffff, facts.least == 0))
            for_eights([&](unsigned, const auto& values) { facts.count_zeros(values); });
        const unsigned &small = exchange(2, facts.small), &zeros = exchange(3, facts.zeros),
                       &least_but_0 = exchange(4, facts.least_but_0);
        Team::meet();
        facts.small += small;
        facts.zeros += zeros;
        facts.least_but_0 = min(facts.least_but_0, least_but_0);
    }
    if (half == 0) found(row, facts, scale);
}

// Splits a piece of an operand, of which `unit` is the number; element (row, k) lies at X[row * ld + k], or at
// X[k * ld + row] with ACROSS. JUDGE: its verdicts are not known yet.
template <bool ACROSS, bool JUDGE, class Team, class Format, int STRIP>
__device__ __forceinline__ void split_piece(
    const SplitOperand<Format, STRIP>& to, unsigned unit, const float* X, int ld, int rows, int depth, char* image)
{
    using Operand = SplitOperand<Format, STRIP>;
    constexpr int PARTS = Format::PARTS;
    float* const floats = reinterpret_cast<float*>(image + 2 * PARTS * PIECE_BYTES);
    const unsigned pieces = to.strips * Operand::UNITS;
    const unsigned piece = ACROSS ? unit % pieces : unit / to.blocks, block = ACROSS ? unit / pieces : unit % to.blocks;
    const int first_row = static_cast<int>(piece) * SPLIT_ROWS, first_k = static_cast<int>(block) * SPLIT_DEPTH;
    const int depth_left = min(depth - first_k, SPLIT_DEPTH);
    const Offset first = ACROSS ? first_k * static_cast<Offset>(ld) + first_row : first_row * static_cast<Offset>(ld) + first_k;
    copy_floats<ACROSS, Team>(floats, X + first, ld, rows - first_row, depth_left);

    const unsigned strip = piece / Operand::UNITS, of_strip = piece % Operand::UNITS;
    float* const scales = to.scales + (static_cast<Offset>(strip) * to.blocks + block) * STRIP + of_strip * SPLIT_ROWS;
    unsigned usual = 0, every = 0;  // verdicts on rows that this thread has found, without odd ones and with them
    const auto found = [&](unsigned row, const RowFacts& facts, Scale scale) {
        scales[row] = scale.up;
        if constexpr (JUDGE) {
            const unsigned bits = facts.verdict(SPLIT_DEPTH - depth_left);
            every |= bits;
            if (halves_suit(bits)) usual |= bits;
            else to.verdicts.list(first_row + row);
        }
    };
    if constexpr (ACROSS)
        split_across<JUDGE, Team, Format>(
            floats, image, reinterpret_cast<unsigned(*)[2][SPLIT_ROWS]>(floats + SPLIT_ROWS * SPLIT_DEPTH), found);
    else
        split_along<JUDGE, Team, Format>(floats, image, found);
    publish_to_copies();
    Team::meet();
    if (Team::thread() == 0) {
        for (int half = 0; half < 2; ++half)
            for (int part = 0; part < PARTS; ++part)
                store_bulk(
                    const_cast<char*>(to.stage(strip, block, half)) + part * Operand::PART_BYTES + of_strip * PIECE_BYTES,
                    shared_address(image) + (half * PARTS + part) * PIECE_BYTES, PIECE_BYTES);
        commit_stores();
    }
    if constexpr (JUDGE) {
        usual = __reduce_or_sync(0xffffffff, usual);
        every = __reduce_or_sync(0xffffffff, every);
        if (Team::thread() % 32 == 0) to.verdicts.add(strip, usual, every);
    }
    if (Team::thread() == 0) wait_until_read();
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
