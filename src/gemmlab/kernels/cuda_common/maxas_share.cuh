// What one thread brings of the tiles of A and B in the Maxwell design: tracks to its pieces, and no memory access but
// the guarded one.
//
// Tiles are BK x W in shared memory, A and B alike. Pieces are four floats, in the order of pieces.cuh with PAIR = 1.
// Every thread keeps a track to each of its own: where it begins in the next tile, as a texel's index or as a pointer.
//
//     as it lies: a piece is four x                  TURNED: a piece is four k, which become a column
//
//        x ->  W = 64, LOADERS = 32                       k ->
//      k [t0  ][t1  ] ...     [t15 ]  track 0         x  [t0  ][t0  ]   tracks 0 and 2: a sector of 32 bytes
//        [t16 ][t17 ] ...     [t31 ]                     [t1  ][t1  ]   has one user
//        [t0  ][t1  ] ...     [t15 ]  track 1             :
#pragma once

#include "four.cuh"
#include "pieces.cuh"
#include "stored.cuh"
#include "texture.cuh"
#include "tile.cuh"

// How a piece is read: float by float behind guards, by one LDG.128, or by one texture fetch.
struct ByFloat {
    using Track = const Stored*;
};
struct ByFour {
    using Track = const Stored*;
};
struct ByTexel {
    using Track = int;
};
template <class By, class Other>
inline constexpr bool is = false;
template <class By>
inline constexpr bool is<By, By> = true;

// One operand, from the block's first tile on.
struct Panel {
    const Stored* base;  // of the whole matrix
    cudaTextureObject_t texture;
    Offset first;  // the element (k, x) = (0, 0)
    int ld;
    int extent;  // how many x there are from it on, 1 at least
    bool turned;

    // Whether pieces are aligned, and lie wholly inside or outside of the matrix.
    template <int W>
    __device__ __forceinline__ bool in_fours(int depth) const
    {
        return rows_are_aligned(base, ld) && (turned ? depth % 4 == 0 : extent >= W || extent % 4 == 0);
    }
};

// The first panel or the second, the same for a whole warp.
template <class By>
__device__ __forceinline__ Panel either(bool second, const Panel& A, const Panel& B)
{
    return {second ? B.base : A.base, is<By, ByTexel> ? of_warp(second ? B.texture : A.texture) : 0,
            second ? B.first : A.first, second ? B.ld : A.ld, second ? B.extent : A.extent,
            second ? B.turned : A.turned};
}

// What one of LOADERS threads brings of an operand's tiles.
template <int W, int BK, int LOADERS, class By>
struct Share {
    static constexpr int COUNT = W * BK / (4 * LOADERS);  // pieces and tracks: 4 of 64 x 8 for half of 64 threads
    static_assert(COUNT * 4 * LOADERS == W * BK && W % LOADERS * (LOADERS % W) == 0, "tiles divide among the threads");

    typename By::Track track[COUNT];
    cudaTextureObject_t texture;
    Offset step;  // of a track from one tile to the next
    int extent;
    int k, x;  // of piece 0 in the tile
    bool turned;
    int column[COUNT];  // 1 where piece i becomes a column: `turned`, as predicates of their own

    using AsItLies = PieceOrder<W, LOADERS, false, 4, 1>;
    using Turned = PieceOrder<W, LOADERS, true, 4, 1>;

    // From piece 0 to piece i.
    static constexpr __device__ int k_step(bool turned, int i) { return turned ? Turned::to_k(i) : AsItLies::to_k(i); }
    static constexpr __device__ int x_step(bool turned, int i) { return turned ? Turned::to_x(i) : AsItLies::to_x(i); }

    // The first tile begins `missing` steps of k before the matrix, so that the last one ends with it. Along x the last
    // piece inside stands in for those outside: its products land in results that nobody stores.
    __device__ __forceinline__ Share(const Panel& panel, int thread, int missing)
        : texture(panel.texture),
          step(BK * static_cast<Offset>(panel.turned ? 1 : panel.ld) / (is<By, ByTexel> ? 4 : 1)),
          extent(panel.extent),
          k(panel.turned ? thread / W * 4 : thread / (W / 4)),
          x(panel.turned ? thread % W : thread % (W / 4) * 4),
          turned(panel.turned)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int at_k = k + k_step(turned, i) - missing, at_x = x + x_step(turned, i);
            const int inside = is<By, ByFloat> ? at_x : min(at_x, extent - (turned ? 1 : 4));
            const Offset at = panel.first + (turned ? inside * static_cast<Offset>(panel.ld) + at_k
                                                    : at_k * static_cast<Offset>(panel.ld) + inside);
            if constexpr (is<By, ByTexel>) track[i] = texel_of(panel.base, at);
            else track[i] = panel.base + at;
            // The compiler must not find out that all are equal. It would branch once for all of them, which cuts the
            // loop into pieces; like this it predicates the stores of each piece.
            column[i] = turned;
            asm volatile("" : "+r"(column[i]));
        }
    }

    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if constexpr (is<By, ByTexel>) track[i] += static_cast<int>(step);
            else track[i] += step;
        }
    }

    // How many k of piece i lie before the matrix, where `missing` of the tile do.
    __device__ __forceinline__ int before(int i, int missing) const { return missing - k - k_step(turned, i); }

    // Piece i where some of it may lie outside of the matrix.
    __device__ __forceinline__ float4 load_inside(int i, int missing) const
    {
        const Stored* const src = track[i];
        const int absent = before(i, missing), present = extent - x - x_step(turned, i);
        const int low = turned ? absent : absent > 0 ? 4 : 0, high = !turned ? present : present > 0 ? 4 : 0;
        return make_float4(
            low <= 0 && high > 0 ? as_float(src[0]) : 0.0f, low <= 1 && high > 1 ? as_float(src[1]) : 0.0f,
            low <= 2 && high > 2 ? as_float(src[2]) : 0.0f, low <= 3 && high > 3 ? as_float(src[3]) : 0.0f);
    }

    // Words of piece 0 in the tile, and of piece i from there, as it lies or turned.
    __device__ __forceinline__ int word() const { return k * W + x; }
    static constexpr __device__ int word_step(bool turned, int i) { return k_step(turned, i) * W + x_step(turned, i); }
};

// A place in shared memory by its byte offset, as in instructions, so that one XOR swaps the buffers.
__device__ __forceinline__ float* at_byte(float* shared, unsigned byte)
{
    return reinterpret_cast<float*>(reinterpret_cast<char*>(shared) + byte);
}
