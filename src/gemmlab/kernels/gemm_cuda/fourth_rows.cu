/* gemmlab
summary = "TF32 on Hopper's tensor cores for rows off 16 bytes: four tensor maps, each over every fourth row"
idea = "Every fourth row lies a multiple of 16 bytes further at any row pitch. A tile takes rows of A of one class, so that k is shifted alike in all of them."
source = "none known: CUTLASS 3.x has no kernel for such operands"
op = "gemm"
after = "multicast"
branch = true
arch = "sm_90a"
precision = "tf32"
transposes = ["nn"]
args = "M, N, K, alpha, lda, ldb, beta, C, ldc, tensor_map(A), tensor_map(B)"
grid = """X_BLOCKS * Y_BLOCKS * min(BLOCKS // (X_BLOCKS * Y_BLOCKS), 4 * ceil_div(ceil_div(M, 4), BY * Y_BLOCKS) \
    * ceil_div(N, 128 * X_BLOCKS))"""
threads = 384
smem_bytes = "208896 // (BY * 128 + 17408) * (BY * 128 + 17424) + 16384"
steps = """32 * ceil_div(K, 32) * ceil_div(4 * X_BLOCKS * Y_BLOCKS * ceil_div(ceil_div(M, 4), BY * Y_BLOCKS) \
    * ceil_div(N, 128 * X_BLOCKS), max(1, blocks))"""
require = [
    "BY == 64 or BY == 128 or BY == 256", "GROUP >= 1 and X_BLOCKS * Y_BLOCKS <= BLOCKS <= 4096",
    "1 <= X_BLOCKS and 1 <= Y_BLOCKS and X_BLOCKS * Y_BLOCKS <= 4 and X_BLOCKS != 3 and Y_BLOCKS != 3",
]
expect = [
    # A warpgroup multiplies 64 x BY x 8 with an instruction of four warps.
    { shape = "1024x256x64", that = "executed_HGMMA * 64 * BY * 8 == 4 * M * N * K" },
    # Five copies bring a stage: every fourth step of X, and Y.
    { shape = "1024x256x64", that = "executed_UTMALDG * BY * 128 * 32 == 5 * M * N * K and global_load_requests == 0" },
    # Odd rows: X goes to registers without a bank conflict.
    { shape = "1023x255x63", that = "shared_load_excess == 0" },
]

[params]
BY = 256      # of A's rows in a tile, every fourth one; a tile has 128 columns
GROUP = 8     # tiles across a strip of the order in which blocks walk C
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
X_BLOCKS = 2  # of a cluster, which share Y
Y_BLOCKS = 1  # likewise, X

[tune]
BY = [64, 128, 256]
GROUP = [8, 16]
X_BLOCKS = [1, 2]
Y_BLOCKS = [1, 2]

[maps]
A = { type = "tfloat32", box = "BY // X_BLOCKS, 32", swizzle = 128, classes = 4 }
B = { type = "tfloat32", box = "8, 132", classes = 4 }
*/

#include "fourth_rows.cuh"

// A thread's part of X as the register operand of wgmma: two neighbouring rows, `pair` and the next, at k = l % 4 and
// l % 4 + 4 of each eight. Lane l reads words 4 (l / 4) + shift of slot l % 4. If rows are an odd number of words
// apart, the shifts of the four slots are 0, 1, 2, 3 in some order, and 32 lanes read 32 banks.
struct ShiftedX {
    int pair;

    __device__ __forceinline__ ShiftedX()
        : pair((threadIdx.x / 128 - 1) * 64 + threadIdx.x % 128 / 64 * 32 + threadIdx.x % 32 / 4 * 4
               + threadIdx.x / 32 % 2 * 2)
    {
    }

    // Where the thread's first word lies in a stage, for a tile of Y that is shifted by `shift`.
    __device__ __forceinline__ unsigned offset(const RowShifts& x, int shift) const
    {
        const int slot = threadIdx.x % 4;
        return (slot * STAGED_STEPS * X_PITCH + pair + x.of((slot - shift) & 3)) * 4;
    }

    static __device__ __forceinline__ void load(unsigned (&x)[TF32_DEPTH / 8][4], SharedAddress from)
    {
#pragma unroll
        for (int step = 0; step < STAGED_STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                asm volatile("ld.shared.u32 %0, [%1];"
                             : "=r"(x[step / 2][step % 2 * 2 + i])
                             : "r"(from + step * X_PITCH * 4 + i * 4));
    }
};

// The first `shift` words of Y's rows lie before the operand. X has zeros there, but zero times infinity is none.
template <int BY>
__device__ __forceinline__ void clear_before(SharedAddress y, int shift)
{
    const int row = threadIdx.x - 128;
    if (row < BY)
        for (int k = 0; k < shift; ++k)
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(y + row * 128 + (row % 8 << 4) + k * 4), "r"(0) : "memory");
    publish_to_copies();
    asm volatile("bar.sync 1, 256;" ::: "memory");
}

// C = alpha * sums + beta * C for a tile, `rows` and `cols` of which exist; its rows are CLASSES rows of C apart. Sums
// are those of C's transpose; two warps have 32 columns of C, and turn 16 rows of them in 1024 words of `staged`.
//
//     row r, column n of 16 x 32 lies at word 32 r + 4 (n / 4 ^ r / 4 % 2 * 4) + (n % 4 ^ r / 2 % 2 * 2): no conflicts
//
// WHOLE says that all of the tile exists and beta is 0: then few instructions are left.
template <bool WHOLE, int COUNT>
__device__ __forceinline__ void store_turned(
    float* c, int ldc, int rows, int cols, float alpha, const float (&sums)[COUNT], float beta, float* staged)
{
    constexpr int AT_ONCE = 16, EACH = AT_ONCE / 2;  // rows of two warps, and of one
    const int lane = threadIdx.x % 32, half = threadIdx.x / 32 % 2, of_two = (threadIdx.x / 64 - 2) % 4;
    const auto at = [&](float* from, int row, int col) {
        return from + row * 32 + (col / 4 ^ row / 4 % 2 * 4) * 4 + (col % 4 ^ row / 2 % 2 * 2);
    };
    const int col = of_two * 32 + lane;
    c += static_cast<Offset>(ldc) * (CLASSES * EACH * half) + col;
    staged += of_two * 1024;
#pragma unroll
    for (int i = 0; i < COUNT; i += AT_ONCE / 2) {
        float* const buffer = staged + i / 8 % 2 * 512;  // the other one may still be read
#pragma unroll
        for (int j = 0; j < 8; j += 4)
#pragma unroll
            for (int k = 0; k < 2; ++k)
                *reinterpret_cast<float2*>(at(buffer, j * 2 + lane % 4 * 2 + k, lane / 4 * 4 + half * 2)) =
                    make_float2(sums[i + j + k], sums[i + j + k + 2]);
        asm volatile("bar.sync %0, 64;" ::"r"(2 + of_two) : "memory");
        const int left = WHOLE ? EACH : col < cols ? rows - i * 2 - half * EACH : 0;
        const auto element = [&](int k) { return c + static_cast<Offset>(ldc) * (CLASSES * k); };
        float old[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) old[k] = !WHOLE && beta != 0.0f && k < left ? *element(k) : 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            float result = alpha * *at(buffer, half * EACH + k, lane);
            if (!WHOLE && beta != 0.0f) result += beta * old[k];
            if (k < left) *element(k) = result;
        }
        c += static_cast<Offset>(ldc) * (CLASSES * AT_ONCE);
    }
}

template <int BY, int GROUP, int X_BLOCKS, int Y_BLOCKS>
__global__ void __launch_bounds__(384, 1) __cluster_dims__(X_BLOCKS * Y_BLOCKS) fourth_rows(
    int M, int N, int K, float alpha, int lda, int ldb, float beta, float* C, int ldc,
    const __grid_constant__ FourMaps A, const __grid_constant__ FourMaps B)
{
    extern __shared__ __align__(1024) char shared[];
    const RowShifts a(lda), b(ldb);
    const int depth = sum_depth(K, alpha);
    const auto stages_of = [&](int shift) { return depth > 0 ? 2 * ceil_div(depth + shift, 2 * TF32_DEPTH) : 0; };
    using Blocks = Cluster<X_BLOCKS, Y_BLOCKS>;
    using Tiles = ClassTile<BY, GROUP, Blocks>;
    using Ring = ClassRing<BY, Blocks>;
    Ring ring(shared);
    ring.open();

    if (threadIdx.x < 128) {  // the producer: one thread copies, the others give their registers
        give_back_registers<40>();
        if (threadIdx.x == 0)
            for (Tiles tile(N, M); tile.exists(); tile.advance()) {
                const int shift = a.of(tile.row_class);
#pragma unroll 1  // the producer has few registers
                for (int stage = 0; stage < stages_of(shift); ++stage)
                    ring.load(tile, stage, shift, B, K, A);
            }
        __syncwarp();
        Blocks::leave();
        return;
    }
    take_registers<232>();
    const ShiftedX x_place;
    float* const staged = reinterpret_cast<float*>(shared + Ring::NBYTES);
    for (Tiles tile(N, M); tile.exists(); tile.advance()) {
        const int shift = a.of(tile.row_class), stages = stages_of(shift);
        const unsigned offset = x_place.offset(b, shift);
        float sums[BY / 2] = {};
        unsigned x[2][TF32_DEPTH / 8][4];
        typename Ring::Stage before;
#pragma unroll 1
        for (int stage = 0; stage < stages; stage += 2)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const auto now = ring.next();
                if (half == 0 && stage == 0 && shift > 0) clear_before<BY>(now.y, shift);
                x_place.load(x[half], now.x() + offset);
                multiply_stage(sums, x[half], now.y, stage + half > 0);
                wait_for_products<1>();  // the stage before has been read
                if (stage + half > 0) ring.release(before);
                before = now;
            }
        wait_for_products<0>();
        if (stages > 0) ring.release(before);
        pin(sums);
        const int rows = rows_of_class(M, tile.row_class) - tile.first;
        const int cols = N - tile.x;
        float* const c = C + (static_cast<Offset>(tile.first) * CLASSES + tile.row_class) * ldc + tile.x;
        if (rows >= BY && cols >= TF32_ROWS && beta == 0.0f)
            store_turned<true>(c, ldc, rows, cols, alpha, sums, beta, staged);
        else
            store_turned<false>(c, ldc, rows, cols, alpha, sums, beta, staged);
    }
    Blocks::leave();
}
