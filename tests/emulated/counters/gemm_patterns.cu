// Two GEMM kernels for square sizes that are multiples of 64, 64 threads a block, a 64 x 64 tile of C each, 8 x 8
// results a thread and 8 columns of A a step, which touch shared memory as the 2D-tiled and the vectorised kernel of
// "CUDA SGEMM" write-ups do. Their conflicts are known figures; they are here to be counted, not to be fast.

constexpr int TILE = 64;
constexpr int DEPTH = 8;
constexpr int OWN = 8;

// A row by row: a fragment of A is a column of the tile, and the compiler reads four steps of one row at once.
extern "C" __global__ void tiled_2d(const float* A, const float* B, float* C, int n) {
    __shared__ float a_tile[TILE][DEPTH];
    __shared__ float b_tile[DEPTH][TILE];
    const int high = (int)threadIdx.x / 8;
    const int low = (int)threadIdx.x % 8;
    const int row = (int)blockIdx.y * TILE;
    const int col = (int)blockIdx.x * TILE;
    float acc[OWN][OWN] = {};
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
#pragma unroll
        for (int step = 0; step < TILE; step += 8) {
            a_tile[high + step][low] = A[(row + high + step) * n + k0 + low];
            b_tile[high][low + step] = B[(k0 + high) * n + col + low + step];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float a_frag[OWN], b_frag[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++) a_frag[i] = a_tile[high * OWN + i][k];
#pragma unroll
            for (int j = 0; j < OWN; j++) b_frag[j] = b_tile[k][low * OWN + j];
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int j = 0; j < OWN; j++) acc[i][j] += a_frag[i] * b_frag[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) C[(row + high * OWN + i) * n + col + low * OWN + j] = acc[i][j];
}

// A turned on its way into shared memory, four floats at a time in global memory.
extern "C" __global__ void tiled_2d_vector(const float* A, const float* B, float* C, int n) {
    __shared__ __align__(16) float a_tile[DEPTH][TILE];
    __shared__ __align__(16) float b_tile[DEPTH][TILE];
    const int thread = (int)threadIdx.x;
    const int high = thread / 8;
    const int low = thread % 8;
    const int row = (int)blockIdx.y * TILE;
    const int col = (int)blockIdx.x * TILE;
    float acc[OWN][OWN] = {};
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
#pragma unroll
        for (int step = 0; step < TILE; step += 32) {
            const int r = thread / 2 + step;
            const int c = thread % 2 * 4;
            const float4 v = *(const float4*)&A[(row + r) * n + k0 + c];
            a_tile[c + 0][r] = v.x;
            a_tile[c + 1][r] = v.y;
            a_tile[c + 2][r] = v.z;
            a_tile[c + 3][r] = v.w;
        }
#pragma unroll
        for (int step = 0; step < DEPTH; step += 4) {
            const int r = thread / 16 + step;
            const int c = thread % 16 * 4;
            *(float4*)&b_tile[r][c] = *(const float4*)&B[(k0 + r) * n + col + c];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float a_frag[OWN], b_frag[OWN];
#pragma unroll
            for (int i = 0; i < OWN; i++) a_frag[i] = a_tile[k][high * OWN + i];
#pragma unroll
            for (int j = 0; j < OWN; j++) b_frag[j] = b_tile[k][low * OWN + j];
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int j = 0; j < OWN; j++) acc[i][j] += a_frag[i] * b_frag[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j += 4)
            *(float4*)&C[(row + high * OWN + i) * n + col + low * OWN + j] =
                make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
}
