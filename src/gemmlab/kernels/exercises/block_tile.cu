/* exercise
task = """
Every thread of a block reads its row of A and its column of B from global memory, and its neighbours read them
again. Keep tiles of 32 x 32 of A and B in shared memory: the block loads each word once a tile, all threads wait,
all multiply, and all wait again before the next tiles come."""
expect = [
    { shape = "64x96x64", that = "global_load_requests <= M * N * K // 512" },
    "shared_load_excess == 0 and shared_store_excess == 0",
]
*/
/* gemmlab
exercise = "block_tile"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "N // 32, M // 32"
threads = "32, 32"
*/

__global__ void my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    const int row = blockIdx.y * 32 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
