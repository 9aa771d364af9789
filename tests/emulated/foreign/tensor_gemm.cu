// C = A B^T in half precision on tensor cores: cp.async into two stages, ldmatrix, mma.sync; 64 x 64 tiles, 4 warps.
typedef unsigned short half_bits;
#define BM 64
#define BN 64
#define BK 32
#define PITCH (BK + 8)

__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem(to)), "l"(from));
}

__device__ __forceinline__ void load_tiles(half_bits (*a)[PITCH], half_bits (*b)[PITCH], const half_bits* A,
                                           const half_bits* B, int k0, int K) {
    for (int t = threadIdx.x; t < BM * BK / 8; t += 128) {
        int row = t / (BK / 8), col = t % (BK / 8) * 8;
        copy16(&a[row][col], A + (size_t)row * K + k0 + col);
        copy16(&b[row][col], B + (size_t)row * K + k0 + col);
    }
    asm volatile("cp.async.commit_group;");
}

extern "C" __global__ void __launch_bounds__(128)
    gemm_f16(const half_bits* A, const half_bits* B, float* C, int N, int K) {
    __shared__ __align__(16) half_bits a_tile[2][BM][PITCH], b_tile[2][BN][PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
    A += (size_t)blockIdx.y * BM * K;
    B += (size_t)blockIdx.x * BN * K;
    float acc[2][4][4] = {};

    load_tiles(a_tile[0], b_tile[0], A, B, 0, K);
    for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
        if (k0 + BK < K) {
            load_tiles(a_tile[stage ^ 1], b_tile[stage ^ 1], A, B, k0 + BK, K);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            unsigned a[2][4], b[4][2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                unsigned at = smem(&a_tile[stage][warp_m + i * 16 + lane % 16][kk + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(at));
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                unsigned at = smem(&b_tile[stage][warp_n + j * 8 + lane % 8][kk + lane / 8 % 2 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(b[j][0]), "=r"(b[j][1]) : "r"(at));
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = blockIdx.y * BM + warp_m + i * 16 + lane / 4;
            int col = blockIdx.x * BN + warp_n + j * 8 + lane % 4 * 2;
            *(float2*)&C[(size_t)row * N + col] = make_float2(acc[i][j][0], acc[i][j][1]);
            *(float2*)&C[(size_t)(row + 8) * N + col] = make_float2(acc[i][j][2], acc[i][j][3]);
        }
}
