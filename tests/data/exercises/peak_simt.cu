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
    const int across = N / 32, tiles = M / 32 * across, steps = K / 32;
    const int over = tiles % 3, whole = over > 0 && steps * (3 - over) > 2 * 3 ? max(tiles - over - 3, 0) : tiles;
    const int all = (tiles - whole) * steps;
    const auto stretch = [&](int block) { return static_cast<int>(static_cast<long long>(all) * block / 3); };
    const auto owner = [&](int step) {
        int block = 0;
        while (step >= stretch(block + 1)) ++block;
        return block;
    };

    const int end = stretch(blockIdx.x + 1);
    int at = stretch(blockIdx.x);
    for (int turn = blockIdx.x; turn < whole || at < end; turn += 3) {
        const int divided = turn < whole ? 0 : at / steps, first = divided * steps;
        const int tile = turn < whole ? turn : whole + divided, until = min(end, first + steps);
        const int row = tile / across * 32 + y, col = tile % across * 32 + x;
        const int from_block = turn < whole ? 0 : owner(first), to_block = turn < whole ? 0 : owner(first + steps - 1);
        float sum = 0.0f;
        const int from = turn < whole ? 0 : at - first, to = turn < whole ? steps : until - first;
        if (turn >= whole) at = until;
        for (int step = from; step < to; ++step) {
            const int k0 = step * 32;
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
