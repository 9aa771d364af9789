/* exercise
task = """
Three bfloat16 of 8 bits each have all bits of a float32, so the nine products of parts are exact. But part i is about
256^i times smaller than part 0, and some of the nine are smaller than what a float32 sum loses anyway. Find out which,
and leave them out: two thirds of the tensor core's work remain. Small products come first, as now."""
untried = ["special", "subnormal", "huge"]
expect = [
    { shape = "64x96x64", that = "executed_HMMA_16816_F32_BF16 == 6 * M * N * K // 2048" },
]
*/
/* gemmlab
exercise = "mma_bf16x6"
arch = "sm_80"
precision = "bf16x6"
require = ["M % 16 == 0 and N % 8 == 0 and K % 16 == 0"]
grid = "N // 8, M // 16"
threads = "32"
*/

#include <cuda_bf16.h>

// Three parts of each of two neighbours along k, the first one in the lower half of a word.
struct Pair {
    unsigned part[3];

    __device__ inline Pair(float x, float y)
    {
        for (int i = 0; i < 3; ++i) {
            const __nv_bfloat162 both(__float2bfloat16_rn(x), __float2bfloat16_rn(y));
            part[i] = *reinterpret_cast<const unsigned*>(&both);
            x -= __low2float(both);  // exact
            y -= __high2float(both);
        }
    }
};

// Adds the tensor core's product of 16 x 16 of A, four words, by 16 x 8 of B, two words: lane 4 g + c has pairs from
// step 2 c and from step 2 c + 8 on, of rows g and g + 8 of A, and of column g of B. It has columns 2 c and 2 c + 1 of
// d.
__device__ inline void add_product(float (&d)[4], const Pair (&a)[4], int a_part, const Pair (&b)[2], int b_part)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0].part[a_part]), "r"(a[1].part[a_part]), "r"(a[2].part[a_part]), "r"(a[3].part[a_part]),
          "r"(b[0].part[b_part]), "r"(b[1].part[b_part]));
}

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    const long long rows = K, cols = N;
    const float* upper = A + (blockIdx.y * 16 + g) * rows + 2 * c;
    const float* lower = upper + 8 * rows;
    B += 2 * c * cols + blockIdx.x * 8 + g;

    float sums[4] = {};
    for (int k = 0; k < K; k += 16, upper += 16, lower += 16, B += 16 * cols) {
        const Pair a[4] = {{upper[0], upper[1]}, {lower[0], lower[1]}, {upper[8], upper[9]}, {lower[8], lower[9]}};
        const Pair b[2] = {{B[0], B[cols]}, {B[8 * cols], B[9 * cols]}};
        for (int i = 2; i >= 0; --i)
            for (int j = 2; j >= 0; --j) add_product(sums, a, i, b, j);
    }
    float* out = C + (blockIdx.y * 16 + g) * cols + blockIdx.x * 8 + 2 * c;
    out[0] = sums[0];
    out[1] = sums[1];
    out[8 * cols] = sums[2];
    out[8 * cols + 1] = sums[3];
}
