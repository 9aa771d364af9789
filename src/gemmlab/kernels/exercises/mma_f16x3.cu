/* exercise
task = """
Two halves have 22 bits of a float32's 24: high = half(x), and low = half(2048 (x - high)). This kernel multiplies with
FMA lanes. Let the tensor core add three products a step of 16: high by high, and high by low and low by high to a sum
of their own, of which 1 / 2048 counts. But halves end at 65504 and lose bits below 1 / 16384. So look for the largest
element of each row of A and each column of B first, scale them by powers of two that bring it to [1, 2), and take the
scales out of the sums."""
untried = ["wide", "special", "subnormal"]
expect = [
    { shape = "64x96x64", that = "executed_HMMA_16816 == 3 * M * N * K // 2048" },
]
*/
/* gemmlab
exercise = "mma_f16x3"
arch = "sm_80"
precision = "f16x3"
require = ["M % 16 == 0 and N % 8 == 0 and K % 16 == 0"]
grid = "N // 8, M // 16"
threads = "32"
*/

#include <cuda_fp16.h>

// Two parts of each of two neighbours along k, the first one in the lower half of a word; the second part is 2048
// times what the first one leaves.
struct Pair {
    unsigned part[2];

    __device__ inline Pair(float x, float y)
    {
        for (int i = 0; i < 2; ++i) {
            const half2 both(__float2half_rn(x), __float2half_rn(y));
            part[i] = *reinterpret_cast<const unsigned*>(&both);
            x = (x - __low2float(both)) * 2048;  // exact
            y = (y - __high2float(both)) * 2048;
        }
    }
};

// Adds the tensor core's product of 16 x 16 of A, four words, by 16 x 8 of B, two words: lane 4 g + c has pairs from
// step 2 c and from step 2 c + 8 on, of rows g and g + 8 of A, and of column g of B. It has columns 2 c and 2 c + 1 of
// d.
__device__ inline void add_product(float (&d)[4], const Pair (&a)[4], int a_part, const Pair (&b)[2], int b_part)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0].part[a_part]), "r"(a[1].part[a_part]), "r"(a[2].part[a_part]), "r"(a[3].part[a_part]),
          "r"(b[0].part[b_part]), "r"(b[1].part[b_part]));
}

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    A += blockIdx.y * 16 * static_cast<long long>(K);
    B += blockIdx.x * 8;

    float sums[4] = {};
    for (int k = 0; k < K; ++k) {
        const float* b = B + k * static_cast<long long>(N) + 2 * c;
        for (int i = 0; i < 4; ++i) sums[i] += A[(g + i / 2 * 8) * static_cast<long long>(K) + k] * b[i % 2];
    }
    float* out = C + (blockIdx.y * 16 + g) * static_cast<long long>(N) + blockIdx.x * 8 + 2 * c;
    out[0] = sums[0];
    out[1] = sums[1];
    out += 8 * static_cast<long long>(N);
    out[0] = sums[2];
    out[1] = sums[3];
}
