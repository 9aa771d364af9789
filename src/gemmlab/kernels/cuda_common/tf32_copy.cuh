// Stages of TF32 operands that the threads of a block bring themselves: rounded on the way, from rows of any alignment.
#pragma once

#include "tf32.cuh"
#include "tf32_stage.cuh"

// ROWS rows of an operand, 32 of k, in lines of 128 bytes as in a stage: a row of the operand if ALONG, else 32 of its
// rows at one k. Units of 16 bytes lie as wgmma.cuh says.
template <int ROWS, bool ALONG, int THREADS>
struct Tf32Copy {
    static constexpr int UNITS = ROWS * TF32_DEPTH / 4;
    static_assert(UNITS % THREADS == 0, "every thread brings as many units");

    const float* from;  // the tile's first row
    int ld, rows;       // `rows` exist from there on
    bool vectors;       // four of a row are 16 bytes that can be read at once

    __device__ __forceinline__ Tf32Copy(const float* matrix, int ld, int first, int all_rows)
        : from(matrix + (ALONG ? first * static_cast<Offset>(ld) : first)), ld(ld), rows(all_rows - first),
          vectors(rows_are_aligned(matrix, ld))
    {
    }

    // Words of k from `k` on, zeros from `depth` on.
    __device__ __forceinline__ void copy(SharedAddress to, int k, int depth) const
    {
#pragma unroll 2  // so many loads are under way
        for (int i = threadIdx.x; i < UNITS; i += THREADS) {
            const int line = i / 8, unit = i % 8;
            const int row = ALONG ? line : line / 32 * 32 + unit * 4;             // [0, ROWS)
            const int step = k + (ALONG ? unit * 4 : line % 32);                  // [k, k + 32)
            const int here = ALONG ? (row < rows ? depth - step : 0) : (step < depth ? rows - row : 0);
            const float* const at = from + (ALONG ? row * static_cast<Offset>(ld) + step : step * static_cast<Offset>(ld) + row);
            const float4 four = load_four(at, here, vectors);
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to + line * 128 + ((unit ^ line % 8) << 4)),
                         "r"(to_tf32(four.x)), "r"(to_tf32(four.y)), "r"(to_tf32(four.z)), "r"(to_tf32(four.w))
                         : "memory");
        }
    }
};
