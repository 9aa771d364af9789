/* gemmlab
exercise = "block_swizzle"
require = ["M % 32 == 0 and N % 32 == 0 and K % 8 == 0"]
grid = "(M // 32) * (N // 32)"
threads = "32, 32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int across = N / 32, down = M / 32;  // tiles beside and below each other
    const int strip = blockIdx.x / (16 * down), first = strip * 16;
    const int width = min(16, across - first), place = blockIdx.x - first * down;
    const int tile_row = place / width, tile_col = first + place % width;

    const int row = tile_row * 32 + threadIdx.y, col = tile_col * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
