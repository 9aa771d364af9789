/* gemmlab
summary = "TF32 on Hopper's tensor cores for operands that no tensor map describes: copied once, in the layout of shared memory"
idea = "A first launch transposes, rounds and swizzles both operands: one more read and write of each, and then any layout and row pitch runs at the best rate."
source = "CUTLASS 3.x has no kernel for such operands; the launches are those of f16x3"
op = "gemm"
after = "persistent"
branch = true
arch = "sm_90a"
precision = "tf32"
transposes = ["nn", "nt", "tn", "tt"]
phases = "2 * max(1, ceil_div(K, SLICE))"
early = true
args = "M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, workspace, tickets, phase"
grid = """(ceil_div(M, 128) * 128 + ceil_div(N, BN) * BN) // 64 * ceil_div(min(K, SLICE), 128) if phase % 2 == 0 \
    else min(BLOCKS, ceil_div(M, 128) * ceil_div(N, BN))"""
threads = "128 if phase % 2 == 0 else 384"
smem_bytes = "32768 if phase % 2 == 0 else 204800 + 16 * (1536 // (128 + BN))"
steps = "32 * ceil_div(K, 32) * ceil_div(ceil_div(M, 128) * ceil_div(N, BN), max(1, blocks))"
workspace = "512 * ceil_div(min(K, SLICE), 128) * (ceil_div(M, 128) * 128 + ceil_div(N, BN) * BN)"
tickets = "1"
require = [
    "BN == 64 or BN == 128 or BN == 256",
    "GROUP >= 1 and 1 <= BLOCKS <= 4096 and SLICE >= 128 and SLICE % 128 == 0",
]
expect = [
    "shared_load_excess == 0 and shared_store_excess == 0",
    { shape = "128x256x128:tt", that = "shared_load_excess == 0 and shared_store_excess == 0" },
    # A warpgroup multiplies 64 x BN x 8 with an instruction of four warps.
    { shape = "256x256x64", that = "executed_HGMMA * 64 * BN * 8 == 4 * M * N * K" },
    # Two copies bring a stage; four store the image of 64 rows x 128 of k.
    { shape = "130x70x300", that = "executed_UBLKCP == 4 * (4 + BN // 64) * 3 + 2 * 2 * 10" },
    { shape = "256x256x64", that = "global_store_sectors_per_request == 16 or 8 * global_store_sectors >= M * N" },
]

[params]
BN = 256      # of the columns in a tile, which has 128 rows
GROUP = 8     # tiles across a strip of the order in which blocks walk C: 8 x 256 columns and 16 x 128 rows run together
BLOCKS = 132  # as many as run at the same time, one a multiprocessor
SLICE = 8192  # of k, that the workspace holds at a time

[tune]
BN = [64, 128, 256]
GROUP = [8, 16]
*/

#include "tf32_images.cuh"

// A warpgroup's products of all stages, as the producer brings them.
template <int BN, class Ring>
__device__ __forceinline__ void multiply_images(float (&sums)[BN / 2], Ring& ring, unsigned stages)
{
    const int rows = (threadIdx.x / 128 - 1) * 64;
    typename Ring::Stage before;
#pragma unroll 1
    for (unsigned stage = 0; stage < stages; ++stage) {
        const auto now = ring.next();
        const Rows a = rows_of_128_bytes(now.x + rows * 128), b = rows_of_128_bytes(now.y());
        begin_products();
#pragma unroll
        for (int k = 0; k < 128; k += 32) multiply_tf32(sums, further(a, k), further(b, k), stage + k > 0);  // bytes
        commit_products();
        wait_for_products<1>();  // the stage before has been read
        if (stage > 0) ring.release(before);
        before = now;
    }
    wait_for_products<0>();
    ring.release(before);
    pin(sums);
}

template <int BN, int GROUP, int SLICE, bool TRANS_A, bool TRANS_B>
__global__ void __launch_bounds__(PARTS_THREADS, 1) tf32_images(
    int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta, float* C, int ldc,
    void* workspace, unsigned* tickets, int phase)
{
    extern __shared__ __align__(1024) char shared[];
    const PartsSlice it =
        PartsSlice::of<TRANS_A, TRANS_B>(phase / 2, SLICE, M, N, K, alpha, A, lda, B, ldb, beta, C, ldc);
    const OperandImage<TF32_ROWS> a(M, it.depth, static_cast<char*>(workspace));
    const OperandImage<BN> b(N, it.depth, a.end());
    follow_launch();
    if (phase % 2 == 0) {
        const unsigned piece = blockIdx.x;
        if (piece < a.pieces()) a.template copy_piece<TRANS_A>(piece, it.A, lda, shared);
        else if (piece - a.pieces() < b.pieces()) b.template copy_piece<!TRANS_B>(piece - a.pieces(), it.B, ldb, shared);
        return;
    }
    const unsigned stages = ceil_div(it.depth, TF32_DEPTH);
    using Tiles = PartsTile<TF32_ROWS, BN, GROUP>;
    ImageRing<BN> ring(shared);
    ring.open();
    if (threadIdx.x < 128) {  // the producer: one thread copies, the others give their registers
        give_back_registers<40>();
        if (threadIdx.x == 0)
            for (Tiles tile(M, N); tile.exists(); tile.advance())
#pragma unroll 1  // the producer has few registers
                for (unsigned stage = 0; stage < stages; ++stage)
                    ring.load(a.stage(tile.a_strip, stage), b.stage(tile.b_strip, stage));
        return;
    }
    take_registers<232>();
    const PartsPlace place;
    float* const staged = reinterpret_cast<float*>(shared + ImageRing<BN>::NBYTES);
    for (Tiles tile(M, N); tile.exists(); tile.advance()) {
        float sums[BN / 2] = {};
        if (stages > 0) multiply_images<BN>(sums, ring, stages);
        float* const c = it.C + tile.row * static_cast<Offset>(ldc) + tile.col;
        store_products(c, ldc, tile, place, it.alpha, sums, it.beta, staged, LeftOut{});
    }
}
