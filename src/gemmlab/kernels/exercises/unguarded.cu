/* exercise
task = """
Every load asks whether its row, its column and its k exist, in every turn of the loop. Settle that before the loop: a
row or column that does not exist may be any that does, since nobody stores its products; and k may begin before 0. What
may stay in the loop is whether there is a next tile. Asked for at 61x59x509, which has 16 blocks of 8 warps and 32 turns:
at most 80 comparisons of integers (ISETP) in a warp. The file to start from has 163."""
expect = [
    { shape = "61x59x509", says = "comparisons of whole numbers by warps (ISETP)", that = "executed_ISETP <= 80 * 16 * 8" },
]
*/
/* gemmlab
exercise = "unguarded"
require = ["K >= 1"]
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "256"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[16][16 + 1], Bs[16][16];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 16) {
        As[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        Bs[y][x] = col < N && k0 + y < K ? B[(k0 + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
