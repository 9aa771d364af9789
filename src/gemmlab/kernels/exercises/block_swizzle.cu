/* exercise
task = """
Blocks that run together lie in a few rows of tiles and read all of B for them. Number the tiles so that they lie in
a patch as wide as it is high, in strips of eight columns of tiles for instance: fewer different sectors a wave."""
expect = [
    { shape = "512x2048x8", says = "sectors loaded, each once for the blocks that run at a time", that = "global_load_sectors_distinct <= 6500" },
]
*/
/* gemmlab
exercise = "block_swizzle"
require = ["M % 32 == 0 and N % 32 == 0 and K % 8 == 0"]
grid = "(M // 32) * (N // 32)"
threads = "32, 32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int across = N / 32;  // tiles beside each other
    const int tile_row = blockIdx.x / across, tile_col = blockIdx.x % across;

    const int row = tile_row * 32 + threadIdx.y, col = tile_col * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
