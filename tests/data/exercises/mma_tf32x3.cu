/* gemmlab
exercise = "mma_tf32x3"
arch = "sm_80"
precision = "tf32x3"
require = ["M % 16 == 0 and N % 8 == 0 and K % 8 == 0"]
grid = "N // 8, M // 16"
threads = "32"
*/

// The nearest number of TF32, which has ten bits behind the point.
__device__ inline float rounded(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

// 16 rows of A by 8 of k, or, of B, 8 columns by 8 of k, which takes the words 0 and 2. Lane 4 g + c has row (or
// column) g in the words 0 and 2, and row g + 8 in the words 1 and 3: at step c in the words 0 and 1, at step c + 4 in
// the others.
struct Words {
    float word[4];
};

// Adds the tensor core's product of TF32 numbers. Lane 4 g + c has columns 2 c and 2 c + 1 of rows g and g + 8.
__device__ inline void add_product(float (&d)[4], const Words& a, const Words& b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a.word[0])), "r"(__float_as_uint(a.word[1])), "r"(__float_as_uint(a.word[2])),
          "r"(__float_as_uint(a.word[3])), "r"(__float_as_uint(b.word[0])), "r"(__float_as_uint(b.word[2])));
}

// A float32 as a sum of two numbers of TF32.
struct Parts {
    Words high, low;

    __device__ inline explicit Parts(const Words& from)
    {
        for (int i = 0; i < 4; ++i) {
            high.word[i] = rounded(from.word[i]);
            low.word[i] = rounded(from.word[i] - high.word[i]);
        }
    }
};

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    A += blockIdx.y * 16 * static_cast<long long>(K);
    B += blockIdx.x * 8;

    float sums[4] = {};
    for (int k = 0; k < K; k += 8) {
        Words from_a, from_b = {};
        for (int i = 0; i < 4; ++i)
            from_a.word[i] = A[(g + i % 2 * 8) * static_cast<long long>(K) + k + c + i / 2 * 4];
        for (int i = 0; i < 4; i += 2) from_b.word[i] = B[(k + c + i * 2) * static_cast<long long>(N) + g];
        const Parts a(from_a), b(from_b);
        add_product(sums, a.low, b.high);
        add_product(sums, a.high, b.low);
        add_product(sums, a.high, b.high);
    }
    float* out = C + (blockIdx.y * 16 + g) * static_cast<long long>(N) + blockIdx.x * 8 + 2 * c;
    out[0] = sums[0];
    out[1] = sums[1];
    out += 8 * static_cast<long long>(N);
    out[0] = sums[2];
    out[1] = sums[3];
}
