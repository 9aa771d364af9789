// WMMA with TF32: a warp multiplies 16 x 8 by 8 x 16. Which lane holds what of a fragment is the compiler's business;
// what a program may do with a fragment is to load it, to change each of its words alike, to multiply and to store it.
//
// The C++ interface of mma.h reads through generic addresses; these are its instructions with shared ones, as in PTX's
// wmma.load.a.shared. Matrices are row-major, rows LD floats apart, a multiple of 4. They need sm_80.
#pragma once

#include "async_tile.cuh"
#include "epilogue.cuh"
#include "fragment.cuh"
#include "tf32.cuh"

struct WmmaInput {
    unsigned word[4];
};

struct WmmaSums {
    float word[8] = {};
};

// 16 x 8 of A, rounded.
template <int LD>
__device__ __forceinline__ void load_rounded_a(WmmaInput& a, const float* matrix)
{
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(a.word[0]), "=r"(a.word[1]), "=r"(a.word[2]), "=r"(a.word[3])
                 : "r"(shared_address(matrix)), "n"(LD)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) a.word[i] = to_tf32(__uint_as_float(a.word[i]));
}

// 8 x 16 of B, rounded.
template <int LD>
__device__ __forceinline__ void load_rounded_b(WmmaInput& b, const float* matrix)
{
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(b.word[0]), "=r"(b.word[1]), "=r"(b.word[2]), "=r"(b.word[3])
                 : "r"(shared_address(matrix)), "n"(LD)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) b.word[i] = to_tf32(__uint_as_float(b.word[i]));
}

// sums (16 x 16) += a (16 x 8) * b (8 x 16)
__device__ __forceinline__ void add_product(WmmaSums& sums, const WmmaInput& a, const WmmaInput& b)
{
    float(&s)[8] = sums.word;
    asm("wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
        "{%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7])
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]), "r"(b.word[1]),
          "r"(b.word[2]), "r"(b.word[3]));
}

// 16 x 16 sums into shared memory.
template <int LD>
__device__ __forceinline__ void store_sums(float* matrix, const WmmaSums& sums)
{
    const float(&s)[8] = sums.word;
    asm volatile(
        "wmma.store.d.sync.aligned.row.m16n16k8.shared.f32 [%0], {%2, %3, %4, %5, %6, %7, %8, %9}, %1;" ::"r"(
            shared_address(matrix)),
        "n"(LD), "f"(s[0]), "f"(s[1]), "f"(s[2]), "f"(s[3]), "f"(s[4]), "f"(s[5]), "f"(s[6]), "f"(s[7])
        : "memory");
}

constexpr int WMMA_PATCH = 16 * 16;  // floats of shared memory that a warp needs to store its sums

// A warp's sums in pieces of 16 x 16, one after the other through its own `patch` of shared memory, because no one
// knows which lane has which sum. `c` is the first of the warp's elements of C, of which `rows` x `cols` exist.
template <int DOWN, int ACROSS>
__device__ __forceinline__ void store_wmma(
    float* patch, float* c, int ldc, int rows, int cols, float alpha, const WmmaSums (&sums)[DOWN][ACROSS], float beta)
{
    const int x = threadIdx.x % 4 * 4;   // [0, 16) in steps of 4: the lane's columns of a piece
    const int y = threadIdx.x % 32 / 4;  // [0, 8): its first row; the other is 8 below
    const bool vectors = rows_are_aligned(c, ldc);
#pragma unroll
    for (int i = 0; i < 16 * DOWN; i += 16)
#pragma unroll
        for (int j = 0; j < 16 * ACROSS; j += 16) {
            store_sums<16>(patch, sums[i / 16][j / 16]);
            __syncwarp();
#pragma unroll
            for (int row = y; row < y + 16; row += 8) {
                float four[4];
                load_fragment(four, patch + row * 16 + x);
                if (i + row < rows)
                    store_row(
                        c + (i + row) * static_cast<Offset>(ldc) + j + x, cols - j - x, vectors, alpha, four, beta);
            }
            __syncwarp();  // before the next piece takes its place
        }
}
