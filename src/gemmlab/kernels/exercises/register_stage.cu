/* exercise
task = """
Every load asks whether its row, its column and its step exist, in whole tiles too. Ask once a tile: write the loads
twice, without questions for a tile that is whole, and as they are for the others. The result must stay right at the
edges."""
expect = [
    { shape = "64x128x256", that = "instructions <= 134000" },
]
*/
/* gemmlab
exercise = "register_stage"
grid = "ceil_div(M, 32) * ceil_div(N, 64)"
threads = "256"
*/

__global__ void my_kernel(
    int M, int N, int K, const float* A, int lda, const float* B, int ldb, float* C, int ldc)
{
    __shared__ float As[32][16], Bs[16][64];
    const int t = threadIdx.x, x = t % 64, y = t / 64 * 8;  // 8 results below each other
    const int across = (N + 63) / 64;
    const int rows = M - static_cast<int>(blockIdx.x / across) * 32;  // of C from this tile on
    const int cols = N - static_cast<int>(blockIdx.x % across) * 64;
    A += static_cast<long long>(M - rows) * lda;
    B += N - cols;
    C += static_cast<long long>(M - rows) * ldc + N - cols;

    float sums[8] = {};
    for (int left = K; left > 0; left -= 16) {
        for (int i = 0; i < 2; ++i) {
            const int row = t / 16 + 16 * i, k = t % 16;
            As[row][k] = row < rows && k < left ? A[row * static_cast<long long>(lda) + k] : 0.0f;
        }
        for (int i = 0; i < 4; ++i) {
            const int k = t / 64 + 4 * i;
            Bs[k][x] = k < left && x < cols ? B[k * static_cast<long long>(ldb) + x] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 8; ++i) sums[i] += As[y + i][k] * Bs[k][x];
        __syncthreads();
        A += 16;
        B += 16ll * ldb;
    }
    for (int i = 0; i < 8; ++i)
        if (y + i < rows && x < cols) C[(y + i) * static_cast<long long>(ldc) + x] = sums[i];
}
