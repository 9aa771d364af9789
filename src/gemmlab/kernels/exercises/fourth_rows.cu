/* exercise
task = """
Rows of A may be any number of floats apart, so no tensor map lies over it, and the threads copy its tile themselves.
But every fourth row is 16 bytes further on, or a multiple of that, and the tile has such rows only. Let the copy engine
bring it: `classes = 4` in the map of A makes an argument `FourMaps A` (fourth_rows.cuh), and `A.of[r]` is the map over
rows r, r + 4, r + 8 and so on. It begins on 16 bytes, up to three floats before its first row: RowShifts says how many.
A copy must begin at a multiple of four floats: take a box of 36 columns, and skip what does not belong to the row."""
expect = [
    { shape = "128x32x61", says = "boxes copied (UTMALDG)", that = "executed_UTMALDG == 2 * (M // 32) * (N // 32) * ceil_div(K, 32)" },
    { shape = "128x32x61", says = "loads by threads", that = "global_load_requests == 0" },
]
*/
/* gemmlab
exercise = "fourth_rows"
arch = "sm_90a"
require = ["M % 128 == 0 and N % 32 == 0"]
grid = "N // 32, M // 32"
threads = "256"

[maps]
B = { type = "float32", box = "32, 32" }
*/

#include "fourth_rows.cuh"

// A block has 32 columns and 32 rows of C: rows first, first + 4, first + 8 and so on.
__global__ void __launch_bounds__(256) my_kernel(
    int M, int N, int K, const float* A, int lda, const __grid_constant__ CUtensorMap B, float* C)
{
    __shared__ __align__(128) float As[32][32], Bs[32][32];
    __shared__ unsigned long long full;
    const int t = threadIdx.x, x = t % 32, y = t / 32;
    const int row_class = blockIdx.y % 4, first = blockIdx.y / 4 * 128 + row_class, col = blockIdx.x * 32;
    const SharedAddress barrier = shared_address(&full);
    if (t == 0) {
        init_barrier(barrier, 1);
        publish_barriers();
    }
    __syncthreads();

    float sums[4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        if (t == 0) {
            arrive_and_expect(barrier, sizeof Bs);
            copy_box(shared_address(Bs), B, col, k0, barrier);
        }
        for (int i = 0; i < 4; ++i) {
            const long long row = first + 4 * (y + 8 * i);
            As[y + 8 * i][x] = k0 + x < K ? A[row * lda + k0 + x] : 0.0f;
        }
        __syncthreads();
        wait(barrier, k0 / 32 % 2);
        for (int k = 0; k < 32; ++k)
            for (int i = 0; i < 4; ++i) sums[i] += As[y + 8 * i][k] * Bs[k][x];
        __syncthreads();  // all have read
    }
    for (int i = 0; i < 4; ++i) C[(first + 4 * (y + 8 * i)) * static_cast<long long>(N) + col + x] = sums[i];
}
