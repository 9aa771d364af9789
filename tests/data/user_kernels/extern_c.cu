// Leading dimensions, a grid-stride loop, no beta: C is overwritten.
extern "C" __global__ void __launch_bounds__(256)
gemm_kernel(unsigned int m, unsigned int n, unsigned int k, float alpha, const float* __restrict__ a, unsigned int lda,
            const float* __restrict__ b, unsigned int ldb, float* __restrict__ c, unsigned int ldc)
{
    const unsigned long long total = (unsigned long long)m * n;
    for (unsigned long long at = blockIdx.x * 256ull + threadIdx.x; at < total; at += 256ull * gridDim.x) {
        const unsigned int i = at / n, j = at % n;
        float sum = 0.f;
        if (alpha != 0.f)
            for (unsigned int p = 0; p < k; p++)
                sum = fmaf(a[(unsigned long long)i * lda + p], b[(unsigned long long)p * ldb + j], sum);
        c[(unsigned long long)i * ldc + j] = alpha * sum;
    }
}
