/* exercise
task = """
mma.sync says which word of a fragment a lane has, and a sum does not care for the order of its terms: steps of k may
change places, if A and B change theirs alike. This kernel loads A word by word, 8 steps at a time. Go 16 steps at a
time, with two products, and let each lane have steps 4 c to 4 c + 3 of them: then a row of A takes one float4, not four
loads. B stays as it is, in the same order of steps."""
expect = [
    { shape = "64x96x64", that = "executed_LDG_128 == M * N * K // 1024" },
    { shape = "64x96x64", that = "executed_HMMA_1688_F32_TF32 == M * N * K // 1024" },
]
*/
/* gemmlab
exercise = "mma_tf32_pipelined"
arch = "sm_80"
precision = "tf32"
align = 16
require = ["M % 16 == 0 and N % 8 == 0 and K % 16 == 0"]
grid = "N // 8, M // 16"
threads = "32"
*/

__device__ inline unsigned rounded(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// Adds 16 x 8 of A times 8 x 8 of B. Lane 4 g + c has a of rows g and g + 8, b of column g, both at steps c and c + 4.
__device__ inline void add_product(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(rounded(a0)), "r"(rounded(a1)), "r"(rounded(a2)), "r"(rounded(a3)), "r"(rounded(b0)), "r"(rounded(b1)));
}

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    const float* upper = A + (blockIdx.y * 16 + g) * static_cast<long long>(K);
    const float* lower = upper + 8 * static_cast<long long>(K);
    B += blockIdx.x * 8 + g;

    float sums[4] = {};
    for (int k = 0; k < K; k += 8) {
        const float* rows = B + (k + c) * static_cast<long long>(N);
        add_product(sums, upper[k + c], lower[k + c], upper[k + c + 4], lower[k + c + 4], rows[0], rows[4LL * N]);
    }
    float* out = C + (blockIdx.y * 16 + g) * static_cast<long long>(N) + blockIdx.x * 8 + 2 * c;
    out[0] = sums[0];
    out[1] = sums[1];
    out += 8 * static_cast<long long>(N);
    out[0] = sums[2];
    out[1] = sums[3];
}
