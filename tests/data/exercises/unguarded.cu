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
    const int missing = (16 - K % 16) % 16;  // terms that the first block of k lacks
    const float* a = A + min(row, M - 1) * K + x - missing;
    const float* b = B + (y - missing) * N + min(col, N - 1);

    float sum = 0.0f;
    float a_next = x >= missing ? *a : 0.0f, b_next = y >= missing ? *b : 0.0f;
    for (int left = K + missing;; left -= 16) {
        As[y][x] = a_next;
        Bs[y][x] = b_next;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += As[y][k] * Bs[k][x];
        if (left == 16) break;
        __syncthreads();
        a_next = *(a += 16);
        b_next = *(b += 16 * N);
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
