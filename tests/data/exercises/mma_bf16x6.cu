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
        for (int size = 2; size >= 0; --size)
            for (int i = 0; i <= size; ++i) add_product(sums, a, i, b, size - i);
    }
    float* out = C + (blockIdx.y * 16 + g) * cols + blockIdx.x * 8 + 2 * c;
    out[0] = sums[0];
    out[1] = sums[1];
    out[8 * cols] = sums[2];
    out[8 * cols + 1] = sums[3];
}
