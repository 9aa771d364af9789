// What a warp multiplies by itself: STRIP lines of one operand, the narrow one, and 32 * LINES lines of the other.
// Blocks of BK steps of k come by cp.async into shared memory of the warp's own, so no other warp has to be waited for.
//
//   wide     ALONG_K    a line's k side by side    swizzled; lane l has lines l, l + 32, ...
//            ACROSS_K   lines side by side         lane l has lines l * LINES and on
//   narrow   either     turned if need be          a line's k side by side; every lane reads all lines
#pragma once

#include "async_tile.cuh"
#include "copied_tile.cuh"
#include "fragment.cuh"
#include "specialize.cuh"

// Eight lanes are served at once. If each reads a chunk of another line, the swizzle puts these into different banks.
template <int BK, bool LIES>
struct LinesInTurn {
    static constexpr int CHUNKS = BK / 4 < 8 ? BK / 4 : 8;
    static constexpr int TURNS = LIES == ALONG_K ? 8 : 1;
    static __device__ __forceinline__ constexpr int row(int row) { return row; }
    static __device__ __forceinline__ constexpr int chunk(int row, int chunk)
    {
        return LIES == ALONG_K ? chunk ^ row % 8 / (8 / CHUNKS) : chunk;
    }
};

// Tiles of an operand that a warp copies one after the other, as they lie in global memory: ROWS x COLS words, k along
// the rows or across them. `src` is the first element of the first tile; `lines` exist from there on, and `depth` steps
// when one is copied. The others become zeros unread. ONCE says that nobody else reads these words.
template <int ROWS, int COLS, bool LIES, class PLACE = InOrder, bool ONCE = false>
struct WarpTile : LyingTile<ROWS, COLS, LIES> {
    using Lying = LyingTile<ROWS, COLS, LIES>;
    using Lying::BK, Lying::LINES;
    static constexpr int LD = COLS, FLOATS = ROWS * COLS;

    __device__ __forceinline__ WarpTile(const float* src, int ld, int lines)
        : ld(ld), lines(lines), fours(rows_are_aligned(src, ld)), from(src + first_piece())
    {
    }

    // Starts the next tile on its way to `dst`: its pieces are 16 bytes or, if rows do not begin on such, single words.
    __device__ __forceinline__ void copy(float* dst, int depth)
    {
        specialize(lines >= LINES && depth >= BK, [&](auto whole) {
            if (fours) copy_pieces<4>(dst, depth, whole);
            else copy_pieces<1>(dst, depth, whole);
        });
        from += Lying::along_k(BK, ld);
    }

private:
    // A warp's pieces in turn: neighbours along a row, then the following rows.
    template <int WIDTH>
    struct Pieces {
        static constexpr int IN_ROW = COLS / WIDTH;
        static constexpr int ACROSS = IN_ROW > 32 ? IN_ROW / 32 : 1;  // turns for a row
        static constexpr int DOWN = IN_ROW < 32 ? 32 / IN_ROW : 1;    // rows in a turn
        static __device__ __forceinline__ int row() { return threadIdx.x % 32 / IN_ROW; }
        static __device__ __forceinline__ int col() { return threadIdx.x % 32 % IN_ROW * WIDTH; }
    };

    __device__ __forceinline__ Offset first_piece() const
    {
        return fours ? Pieces<4>::row() * static_cast<Offset>(ld) + Pieces<4>::col()
                     : Pieces<1>::row() * static_cast<Offset>(ld) + Pieces<1>::col();
    }

    template <int WIDTH, class WHOLE>
    __device__ __forceinline__ void copy_pieces(float* dst, int depth, WHOLE) const
    {
        using Own = Pieces<WIDTH>;
        const int rows = LIES == ALONG_K ? lines : depth, cols = LIES == ALONG_K ? depth : lines;
        constexpr int UNROLL = WHOLE() ? ROWS : 1;
#pragma unroll UNROLL
        for (int down = 0; down < ROWS; down += Own::DOWN) {
            const int row = Own::row() + down;
            if (ROWS % Own::DOWN != 0 && row >= ROWS) break;
#pragma unroll
            for (int across = 0; across < COLS; across += Own::ACROSS > 1 ? 32 * WIDTH : COLS) {
                const int col = Own::col() + across;
                float* const to = dst + row * LD + 4 * PLACE::chunk(row, col / 4) + col % 4;
                const float* const piece = from + down * static_cast<Offset>(ld) + across;
                const int left = row < rows ? cols - col : 0;  // words of the piece: from below 0 to beyond 4
                if constexpr (WIDTH == 4) {
                    if constexpr (WHOLE() && ONCE) copy_four_of_line_once_async(to, piece);
                    else if constexpr (WHOLE()) copy_four_of_line_async(to, piece);
                    else copy_four_async(to, piece, left);
                } else {
                    if constexpr (WHOLE()) copy_one_async(to, piece);
                    else copy_one_async(to, piece, left > 0);
                }
            }
        }
    }

    const int ld, lines;
    const bool fours;
    const float* from;  // this lane's first piece of the next tile
};

template <int LINES, int BK, bool LIES, bool ONCE>
using WideTile =
    WarpTile<LIES == ALONG_K ? 32 * LINES : BK, LIES == ALONG_K ? BK : 32 * LINES, LIES, LinesInTurn<BK, LIES>, ONCE>;

// The first of the lane's lines, and how far the next one is.
template <int LINES, bool LIES>
struct LaneLines {
    static constexpr int APART = LIES == ALONG_K ? 32 : 1;
    static __device__ __forceinline__ int first() { return threadIdx.x % 32 * (LIES == ALONG_K ? 1 : LINES); }
};

// COUNT neighbours, 1, 2 or 4, in one instruction; `words` is a multiple of as many.
template <int COUNT>
__device__ __forceinline__ void load_few(float (&values)[COUNT], const float* words)
{
    static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4, "as many as one instruction has");
    if constexpr (COUNT == 4) {
        load_fragment(values, words);
    } else if constexpr (COUNT == 2) {
        const float2 two = *reinterpret_cast<const float2*>(words);
        values[0] = two.x;
        values[1] = two.y;
    } else {
        values[0] = *words;
    }
}

template <int COUNT>
__device__ __forceinline__ void store_few(float* words, const float (&values)[COUNT])
{
    if constexpr (COUNT == 4)
        *reinterpret_cast<float4*>(words) = make_float4(values[0], values[1], values[2], values[3]);
    else if constexpr (COUNT == 2) *reinterpret_cast<float2*>(words) = make_float2(values[0], values[1]);
    else *words = values[0];
}

// The lane's lines of the wide tile in steps 4 * quad .. 4 * quad + 3.
template <int LINES, int BK, bool LIES>
__device__ __forceinline__ void load_wide(float (&wide)[4][LINES], const float* tile, int quad)
{
    const int line = LaneLines<LINES, LIES>::first();
    if constexpr (LIES == ALONG_K) {
        const float* chunk = tile + line * BK + 4 * LinesInTurn<BK, LIES>::chunk(line, quad);
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            float four[4];
            load_fragment(four, chunk + i * 32 * BK);  // 32 lines are whole turns
#pragma unroll
            for (int k = 0; k < 4; ++k) wide[k][i] = four[k];
        }
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) load_few(wide[k], tile + (4 * quad + k) * 32 * LINES + line);
    }
}

// The narrow operand's tiles: STRIP lines, with k along the rows.
template <int STRIP, int BK, bool LIES>
struct NarrowTile : WarpTile<STRIP, BK, ALONG_K> {
    using WarpTile<STRIP, BK, ALONG_K>::WarpTile;
};

// What lies across k is turned on its way, word by word: neighbouring lanes have up to eight neighbouring lines, and
// lines begin 4 banks apart, so that the words of a turn meet in no bank.
template <int STRIP, int BK>
struct NarrowTile<STRIP, BK, ACROSS_K> {
    static constexpr int LD = STRIP == 1 ? BK : BK + 4, FLOATS = STRIP * LD;

    __device__ __forceinline__ NarrowTile(const float* src, int ld, int lines) : ld(ld), lines(lines), from(src)
    {
    }

    __device__ __forceinline__ void copy(float* dst, int depth)
    {
        constexpr int TOGETHER = STRIP % 8 == 0 ? 8 : STRIP % 4 == 0 ? 4 : STRIP % 2 == 0 ? 2 : 1;  // lines
#pragma unroll 2
        for (int at = threadIdx.x % 32; at < STRIP * BK; at += 32) {
            const int line = at / (BK * TOGETHER) * TOGETHER + at % TOGETHER, k = at % (BK * TOGETHER) / TOGETHER;
            const bool exists = line < lines && k < depth;
            copy_one_async(dst + line * LD + k, from + (exists ? k * static_cast<Offset>(ld) + line : 0), exists);
        }
        from += BK * static_cast<Offset>(ld);
    }

private:
    const int ld, lines;
    const float* from;
};
