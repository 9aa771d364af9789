// Who brings what of the tiles of A and B into shared memory in the Maxwell design, for (W / 8)^2 threads.
//
// Tiles are BK x W in shared memory, A and B alike, k down and x along: x counts rows of op(A) or columns of op(B). A
// matrix may lie the same way, or TURNED: with k along its rows. Every thread brings pieces of four floats, and keeps a
// track to each: where it begins in the next tile, as a texel's index or as a pointer.
//
//     as it lies: a piece is four x                  TURNED: a piece is four k, which become a column
//
//        x ->  W = 64, LOADERS = 32                       k ->
//      k [t0  ][t1  ] ...     [t15 ]  track 0         x  [t0  ][t0  ]   tracks 0 and 2: a sector of 32 bytes
//        [t16 ][t17 ] ...     [t31 ]                     [t1  ][t1  ]   has one user
//        [t0  ][t1  ] ...     [t15 ]  track 1             :
//
// With SPLIT half of the threads bring A and half B: one set of tracks a thread where there would be two, and so half
// as many additions. The buffers in shared memory are a power of two apart, and swapped by an XOR:
//
//     word   0          W * BK        2 W * BK             4 W * BK
//            | As 0     | Bs 0        | As 1     | Bs 1     |            buffer 1 = buffer 0 ^ 2 W * BK
#pragma once

#include "four.cuh"
#include "texture.cuh"
#include "tile.cuh"

// How a piece is read: float by float behind guards, by one LDG.128, or by one texture fetch.
constexpr int BY_FLOAT = 0;
constexpr int BY_FOUR = 1;
constexpr int BY_TEXEL = 2;

template <int BY>
struct TrackOf {
    using Type = const float*;
};
template <>
struct TrackOf<BY_TEXEL> {
    using Type = int;
};

// One operand, from the block's first tile on.
struct Panel {
    const float* base;  // of the whole matrix
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

// What one of LOADERS threads brings of an operand's tiles.
template <int W, int BK, int LOADERS, int BY>
struct Share {
    static constexpr int COUNT = W * BK / (4 * LOADERS);  // pieces and tracks: 4 of 64 x 8 for half of 64 threads
    static_assert(COUNT * 4 * LOADERS == W * BK && W % LOADERS * (LOADERS % W) == 0, "tiles divide among the threads");

    using Track = typename TrackOf<BY>::Type;
    Track track[COUNT];
    float4 held[COUNT];
    cudaTextureObject_t texture;
    Offset step;  // of a track from one tile to the next
    int extent;
    int k, x;  // of piece 0 in the tile
    bool turned;

    // From piece 0 to piece i.
    static constexpr __device__ int k_step(bool turned, int i)
    {
        return turned ? i * LOADERS / W * 4 : i * LOADERS / (W / 4);
    }
    static constexpr __device__ int x_step(bool turned, int i) { return turned ? i * LOADERS % W : 0; }

    // The first tile begins `missing` steps of k before the matrix, so that the last one ends with it. Along x the last
    // piece inside stands in for those outside: its products land in results that nobody stores.
    __device__ __forceinline__ Share(const Panel& panel, int thread, int missing)
        : texture(panel.texture),
          step(BK * static_cast<Offset>(panel.turned ? 1 : panel.ld) / (BY == BY_TEXEL ? 4 : 1)),
          extent(panel.extent),
          k(panel.turned ? thread / W * 4 : thread / (W / 4)),
          x(panel.turned ? thread % W : thread % (W / 4) * 4),
          turned(panel.turned)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int at_k = k + k_step(turned, i) - missing, at_x = x + x_step(turned, i);
            const int inside = BY == BY_FLOAT ? at_x : min(at_x, extent - (turned ? 1 : 4));
            const Offset at = panel.first + (turned ? inside * static_cast<Offset>(panel.ld) + at_k
                                                    : at_k * static_cast<Offset>(panel.ld) + inside);
            if constexpr (BY == BY_TEXEL) track[i] = texel_of(panel.base, at);
            else track[i] = panel.base + at;
        }
    }

    // Starts the loads of a tile, if it is `wanted`: of the first one without its `missing` steps.
    __device__ __forceinline__ void fetch(bool wanted, int missing)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int before = missing - k - k_step(turned, i);
            if constexpr (BY == BY_FLOAT) {
                if (wanted) held[i] = load_inside(track[i], before, extent - x - x_step(turned, i));
            } else if (missing > 0 && before > 0) {
                held[i] = float4{};
            } else if (wanted) {
                if constexpr (BY == BY_TEXEL) held[i] = tex1Dfetch<float4>(texture, track[i]);
                else held[i] = *reinterpret_cast<const float4*>(track[i]);
            }
        }
    }

    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if constexpr (BY == BY_TEXEL) track[i] += static_cast<int>(step);
            else track[i] += step;
        }
    }

    // Word of piece 0 in the tile.
    __device__ __forceinline__ int place() const { return k * W + x; }

    // Waits for the loads. Piece 0 goes to `dst`.
    __device__ __forceinline__ void put(float* dst) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (turned) {
                float* const to = dst + k_step(true, i) * W + x_step(true, i);
                to[0 * W] = held[i].x;
                to[1 * W] = held[i].y;
                to[2 * W] = held[i].z;
                to[3 * W] = held[i].w;
            } else {
                *reinterpret_cast<float4*>(dst + k_step(false, i) * W) = held[i];
            }
        }
    }

private:
    // `before` of a piece's k do not exist, and `after` is how many of its x do.
    __device__ __forceinline__ float4 load_inside(const float* src, int before, int after) const
    {
        const int low = turned ? before : before > 0 ? 4 : 0, high = !turned ? after : after > 0 ? 4 : 0;
        return make_float4(
            low <= 0 && high > 0 ? src[0] : 0.0f, low <= 1 && high > 1 ? src[1] : 0.0f,
            low <= 2 && high > 2 ? src[2] : 0.0f, low <= 3 && high > 3 ? src[3] : 0.0f);
    }
};

// A place in shared memory, in bytes: as instructions count, so that a swap is one XOR and nothing else.
__device__ __forceinline__ float* at_byte(float* shared, unsigned byte)
{
    return reinterpret_cast<float*>(reinterpret_cast<char*>(shared) + byte);
}

// What a thread brings of both: parts of As and of Bs, or with SPLIT a larger part of one of them.
template <int W, int BK, int BY, bool SPLIT>
struct Shares {
    static constexpr int THREADS = W / 8 * (W / 8);
    Share<W, BK, THREADS, BY> a, b;
    unsigned write_a, write_b;  // bytes

    __device__ __forceinline__ Shares(const Panel& A, const Panel& B, int missing)
        : a(A, threadIdx.x, missing),
          b(B, threadIdx.x, missing),
          write_a(sizeof(float) * a.place()),
          write_b(sizeof(float) * (W * BK + b.place()))
    {
    }
    __device__ __forceinline__ void fetch(bool wanted, int missing = 0)
    {
        a.fetch(wanted, missing);
        b.fetch(wanted, missing);
    }
    __device__ __forceinline__ void advance()
    {
        a.advance();
        b.advance();
    }
    __device__ __forceinline__ void put(float* shared) const
    {
        a.put(at_byte(shared, write_a));
        b.put(at_byte(shared, write_b));
    }
    __device__ __forceinline__ void swap(unsigned buffer)
    {
        write_a ^= buffer;
        write_b ^= buffer;
    }
};

template <int W, int BK, int BY>
struct Shares<W, BK, BY, true> {
    static constexpr int HALF = W / 8 * (W / 8) / 2;  // whole warps
    Share<W, BK, HALF, BY> mine;
    unsigned write;

    __device__ __forceinline__ Shares(const Panel& A, const Panel& B, int missing)
        : mine(either(threadIdx.x >= HALF, A, B), threadIdx.x % HALF, missing),
          write(sizeof(float) * ((threadIdx.x >= HALF ? W * BK : 0) + mine.place()))
    {
    }
    static __device__ __forceinline__ Panel either(bool second, const Panel& A, const Panel& B)
    {
        return {second ? B.base : A.base, BY == BY_TEXEL ? of_warp(second ? B.texture : A.texture) : 0,
                second ? B.first : A.first, second ? B.ld : A.ld, second ? B.extent : A.extent,
                second ? B.turned : A.turned};
    }
    __device__ __forceinline__ void fetch(bool wanted, int missing = 0) { mine.fetch(wanted, missing); }
    __device__ __forceinline__ void advance() { mine.advance(); }
    __device__ __forceinline__ void put(float* shared) const { mine.put(at_byte(shared, write)); }
    __device__ __forceinline__ void swap(unsigned buffer) { write ^= buffer; }
};
