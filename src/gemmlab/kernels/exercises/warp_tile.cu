/* exercise
task = """
A thread has 8 x 8 results in one piece, so lanes beside each other read Bs 32 bytes apart and meet in its banks. Cut
the eight columns of a thread into two pieces of four, so that neighbouring lanes read neighbouring float4 of Bs. Each
row of a piece is then a float4 of C, beside that of the next lane: store it as one."""
expect = [
    { says = "wavefronts of shared loads that bank conflicts add", that = "shared_load_excess == 0" },
    { says = "stores of a float4", that = "executed_STG_128 == M * N // 128" },
    { says = "sectors of a store, of which a warp's float4 fill 16", that = "global_store_sectors_per_request == 16" },
]
*/
/* gemmlab
exercise = "warp_tile"
require = ["M % 64 == 0 and N % 128 == 0 and K % 16 == 0"]
align = 16
grid = "N // 128, M // 64"
threads = "128"
*/

__global__ void __launch_bounds__(128) my_kernel(int M, int N, int K, const float* A, const float* B, float* C)
{
    __shared__ __align__(16) float As[16][64 + 4], Bs[16][128];  // A is transposed: a column of it is a row of As
    const int t = threadIdx.x;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 128;
    C += blockIdx.y * 64 * N + blockIdx.x * 128;
    const int x = t % 16, y = t / 16;  // [0, 16), [0, 8)
    const auto row_of = [&](int i) { return y * 8 + i; };  // of a thread's result i, j in [0, 8)
    const auto col_of = [&](int j) { return x * 8 + j; };

    float sums[8][8] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = 0; i < 8; ++i) As[t % 16][t / 16 + 8 * i] = A[(t / 16 + 8 * i) * K + k0 + t % 16];
        for (int i = 0; i < 4; ++i)
            *reinterpret_cast<float4*>(&Bs[t / 32 + 4 * i][t % 32 * 4]) =
                *reinterpret_cast<const float4*>(B + (k0 + t / 32 + 4 * i) * N + t % 32 * 4);
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            float a[8], b[8];
            for (int i = 0; i < 8; i += 4) {
                *reinterpret_cast<float4*>(a + i) = *reinterpret_cast<const float4*>(&As[k][row_of(i)]);
                *reinterpret_cast<float4*>(b + i) = *reinterpret_cast<const float4*>(&Bs[k][col_of(i)]);
            }
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sums[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) C[row_of(i) * N + col_of(j)] = sums[i][j];
}
