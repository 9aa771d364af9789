/* exercise
task = """
Three blocks take whole tiles in turn: with four tiles one of them works twice as long as the others. Give each
block an equal stretch of all steps of all tiles (a step is 32 of k, and tile t has the steps from t * K / 32 on). A
tile that lies in one stretch is stored as before. Of a tile that two or three blocks share, each leaves its part in
the workspace and takes a ticket of the tile; the one that finds all others done adds the parts. In the header:
workspace = "4096 * 3 * (M // 32) * (N // 32)", tickets = "M // 32 * (N // 32)"."""
expect = [
    { shape = "64x64x96", that = "global_atomic_requests == 4" },
    { shape = "64x64x64", that = "1 <= global_atomic_requests <= 6" },
    { shape = "96x32x64", that = "global_atomic_requests == 0" },
]
*/
/* gemmlab
exercise = "stream_k"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "3"
threads = "32, 32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ float As[32][32], Bs[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int across = N / 32, tiles = M / 32 * across;

    for (int tile = blockIdx.x; tile < tiles; tile += 3) {
        const int row = tile / across * 32 + y, col = tile % across * 32 + x;
        float sum = 0.0f;
        for (int k0 = 0; k0 < K; k0 += 32) {
            As[y][x] = A[row * K + k0 + x];
            Bs[y][x] = B[(k0 + y) * N + col];
            __syncthreads();
            for (int k = 0; k < 32; ++k) sum += As[y][k] * Bs[k][x];
            __syncthreads();
        }
        C[row * N + col] = sum;
    }
}
