/* exercise
task = """
Three blocks have equal stretches of all steps of all tiles (a step is 32 of k), and add up the parts of tiles that two or
three of them share. That costs as much as two steps, so it pays only where tiles do not come out even and are deep. With
`over` tiles in the last round, dividing makes the 3 - over idle blocks work: do it where steps * (3 - over) is more
than 2 * 3. Else block b takes the whole tiles b, b + 3, b + 6, ... Where it does pay, only the tiles of the last two
rounds are to be divided, and those before are taken whole."""
expect = [
    { shape = "64x64x64", that = "global_atomic_requests == 0" },
    { shape = "64x64x128", that = "global_atomic_requests == 4" },
    { shape = "160x32x128", that = "global_atomic_requests == 0" },
    { shape = "224x32x128", that = "global_atomic_requests == 4" },
]
*/
/* gemmlab
exercise = "peak_simt"
require = ["M % 32 == 0 and N % 32 == 0 and K % 32 == 0"]
grid = "3"
threads = "32, 32"
workspace = "4096 * 3 * (M // 32) * (N // 32)"
tickets = "M // 32 * (N // 32)"
*/

__global__ void my_kernel(
    int M, int N, int K, const float* A, const float* B, float* C, float* workspace, unsigned* tickets)
{
    __shared__ float As[32][32], Bs[32][32];
    __shared__ bool last;
    const int x = threadIdx.x, y = threadIdx.y;
    const int across = N / 32, tiles = M / 32 * across, steps = K / 32, all = tiles * steps;
    const auto stretch = [&](int block) { return static_cast<int>(static_cast<long long>(all) * block / 3); };
    const auto owner = [&](int step) {
        int block = 0;
        while (step >= stretch(block + 1)) ++block;
        return block;
    };

    const int end = stretch(blockIdx.x + 1);
    int at = stretch(blockIdx.x);
    for (int empty = blockIdx.x; steps == 0 && empty < tiles; empty += 3)
        C[(empty / across * 32 + y) * N + empty % across * 32 + x] = 0.0f;
    while (at < end) {
        const int tile = at / steps, first = tile * steps, until = min(end, first + steps);
        const int row = tile / across * 32 + y, col = tile % across * 32 + x;
        const int from_block = owner(first), to_block = owner(first + steps - 1);
        float sum = 0.0f;
        for (; at < until; ++at) {
            const int k0 = (at - first) * 32;
            As[y][x] = A[row * K + k0 + x];
            Bs[y][x] = B[(k0 + y) * N + col];
            __syncthreads();
            for (int k = 0; k < 32; ++k) sum += As[y][k] * Bs[k][x];
            __syncthreads();
        }
        if (from_block != to_block) {
            float* mine = workspace + tile * 3 * 1024 + y * 32 + x;
            mine[blockIdx.x * 1024] = sum;
            __threadfence();
            __syncthreads();
            const unsigned others = to_block - from_block;
            if (x == 0 && y == 0) last = atomicInc(tickets + tile, others) == others;
            __syncthreads();
            if (!last) continue;
            __threadfence();
            sum = 0.0f;
            for (int block = from_block; block <= to_block; ++block) sum += __ldcg(mine + block * 1024);
        }
        C[row * N + col] = sum;
    }
}
