// An operand's tile for mma.sync with TF32: from shared memory as strips into registers.
//
//   ALONG_K    rows are lines of BK floats         ldmatrix brings 16 lines x 8 steps
//   ACROSS_K   rows are BK steps of all lines      a 16-byte load brings 4 lines of a step
//
// The second gives a lane four adjacent lines where a strip has every eighth, so lines are permuted, or dealt: the
// strips' line 8 * j + g of each 32 is the operand's line 16 * (g % 2) + 4 * (g / 2) + j. Both kinds of tile do it. It
// pays where the result is stored: a lane ends up with four adjacent columns of C, 16 bytes, four lanes with 64.
//
// Where a chunk lies within its row is swizzled, so that the eight lanes that are served together meet in no bank.
#pragma once

#include "copied_tile.cuh"
#include "tf32.cuh"

// The operand's line that is line `at` of the strips: bits h j1 j0 g2 g1 g0 become h g0 g2 g1 j1 j0.
__device__ __forceinline__ constexpr int dealt(int at)
{
    return at / 32 * 32 + at % 2 * 16 + at / 2 % 4 * 4 + at / 8 % 4;
}

// Along k, 8 chunks are all banks: eight rows take turns in them (with 4 chunks a row, pairs of rows do). Across k,
// four rows do, because lanes 0 .. 7 read chunks c and c + 4 of each.
template <int BK, bool LIES>
struct Swizzled {
    static constexpr int TURNS = LIES == ALONG_K ? 8 : 4;
    static __device__ __forceinline__ constexpr int row(int row) { return LIES == ALONG_K ? dealt(row) : row; }
    static __device__ __forceinline__ constexpr int chunk(int row, int chunk)
    {
        return chunk ^ (LIES == ALONG_K ? row % 8 / (32 / BK) : row % 4);
    }
};

template <int LINES, int BK, int THREADS, bool LIES>
using Tf32Tile = CopiedTile<
    LIES == ALONG_K ? LINES : BK, LIES == ALONG_K ? BK : LINES, LIES == ALONG_K ? BK : LINES, THREADS, LIES,
    Swizzled<BK, LIES>>;

// Reads lines `line` (a multiple of 32) and on of such tiles.
template <int LINES, int BK, bool LIES>
struct StripReader {
    static_assert(LINES % 32 == 0 && (BK == 16 || BK == 32), "lines are dealt in 32, and rows share 8 chunks");

    __device__ __forceinline__ explicit StripReader(int line)
    {
        using Place = Swizzled<BK, LIES>;
        const int lane = threadIdx.x % 32;
        if constexpr (LIES == ALONG_K) {
            // ldmatrix: the lower half of the lanes points at chunks of four steps of 16 lines, the upper at the next.
            at = (line + lane % 16) * BK + 4 * Place::chunk(lane % 16, lane / 16);
        } else {
            // Lane l reads the four lines that l / 4 is dealt, of step l % 4.
            at = lane % 4 * LINES + line + 4 * Place::chunk(lane % 4, lane / 4 % 2 * 4 + lane / 8);
        }
    }

    // 16 * STRIPS lines at steps 8 * step .. 8 * step + 7, not yet rounded. `tile` lies in shared memory.
    template <int STRIPS>
    __device__ __forceinline__ void load(Strip (&strips)[STRIPS], const float* tile, int step) const
    {
        if constexpr (LIES == ALONG_K) {
            // The swizzle is an XOR, so the chunks of a step lie where those of step 0 do, XORed with 8 * step words.
            const float* first = tile + (at ^ 8 * step);
#pragma unroll
            for (int s = 0; s < STRIPS; ++s) {
                unsigned(&w)[4] = strips[s].word;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                             : "r"(shared_address(first + 16 * s * BK))
                             : "memory");
            }
        } else {
            static_assert(STRIPS % 2 == 0, "four lines of a step are in two strips");
#pragma unroll
            for (int s = 0; s < STRIPS; s += 2)
#pragma unroll
                for (int upper = 0; upper < 2; ++upper) {
                    const float* four = tile + at + (8 * step + 4 * upper) * LINES + 16 * s;
                    const uint4 words = *reinterpret_cast<const uint4*>(four);
                    strips[s].word[2 * upper] = words.x;
                    strips[s].word[2 * upper + 1] = words.y;
                    strips[s + 1].word[2 * upper] = words.z;
                    strips[s + 1].word[2 * upper + 1] = words.w;
                }
        }
    }

private:
    int at;  // where the lane begins to read at step 0, in floats
};
