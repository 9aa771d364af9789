// What a thread holds of one step k of the product: a column piece of As, a row piece of Bs, and their outer product.
#pragma once

// COUNT neighbours in shared memory, 16 bytes an instruction. `src` is a multiple of 16 bytes.
template <int COUNT>
__device__ __forceinline__ void load_fragment(float (&frag)[COUNT], const float* src)
{
    static_assert(COUNT % 4 == 0, "a fragment is read four by four");
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(src + i);
        frag[i] = four.x;
        frag[i + 1] = four.y;
        frag[i + 2] = four.z;
        frag[i + 3] = four.w;
    }
}

// sums[i][j] += a_frag[i] * b_frag[j], back and forth: every second row (or column) backwards. A product then shares
// a_frag[i] or b_frag[j] with the one before it, which the operand cache keeps, and the compiler finds registers
// without bank conflicts and reads words long before their use. Lines go along the shorter side; of a square they are
// columns.
template <int TM, int TN>
__device__ __forceinline__ void add_outer_product_in_serpentine(
    float (&sums)[TM][TN], const float (&a_frag)[TM], const float (&b_frag)[TN])
{
    constexpr bool ROWS = TM > TN;
    constexpr int LINES = ROWS ? TM : TN, LENGTH = ROWS ? TN : TM;
#pragma unroll
    for (int line = 0; line < LINES; ++line)
#pragma unroll
        for (int step = 0; step < LENGTH; ++step) {
            const int at = line % 2 ? LENGTH - 1 - step : step;
            const int i = ROWS ? line : at, j = ROWS ? at : line;
            sums[i][j] += a_frag[i] * b_frag[j];
        }
}
