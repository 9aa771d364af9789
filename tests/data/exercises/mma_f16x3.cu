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

// The largest magnitude that the four lanes of a row or column have seen, as a power of two that divides it.
__device__ inline float scale_of(float largest)
{
    for (int lanes = 1; lanes < 4; lanes *= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    return largest > 0 ? exp2f(-ilogbf(largest)) : 1;
}

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    const long long rows = K, cols = N;
    const float* upper = A + (blockIdx.y * 16 + g) * rows + 2 * c;
    const float* lower = upper + 8 * rows;
    B += 2 * c * cols + blockIdx.x * 8 + g;

    float largest_up = 0, largest_low = 0, largest_b = 0;
    for (int k = c; k < K; k += 4) {
        largest_up = fmaxf(largest_up, fabsf(upper[k - 2 * c]));
        largest_low = fmaxf(largest_low, fabsf(lower[k - 2 * c]));
        largest_b = fmaxf(largest_b, fabsf(B[(k - 2 * c) * cols]));
    }
    const float up = scale_of(largest_up), low = scale_of(largest_low), across = scale_of(largest_b);

    float sums[4] = {}, small[4] = {};
    for (int k = 0; k < K; k += 16, upper += 16, lower += 16, B += 16 * cols) {
        const Pair a[4] = {{upper[0] * up, upper[1] * up},
                           {lower[0] * low, lower[1] * low},
                           {upper[8] * up, upper[9] * up},
                           {lower[8] * low, lower[9] * low}};
        const Pair b[2] = {{B[0] * across, B[cols] * across}, {B[8 * cols] * across, B[9 * cols] * across}};
        add_product(small, a, 0, b, 1);
        add_product(small, a, 1, b, 0);
        add_product(sums, a, 0, b, 0);
    }
    // The columns of the sums are those of other lanes.
    const float left = __shfl_sync(0xffffffffu, across, 8 * c), right = __shfl_sync(0xffffffffu, across, 8 * c + 4);
    float* out = C + (blockIdx.y * 16 + g) * cols + blockIdx.x * 8 + 2 * c;
    out[0] = (sums[0] + small[0] / 2048) / up / left;
    out[1] = (sums[1] + small[1] / 2048) / up / right;
    out[8 * cols] = (sums[2] + small[2] / 2048) / low / left;
    out[8 * cols + 1] = (sums[3] + small[3] / 2048) / low / right;
}
