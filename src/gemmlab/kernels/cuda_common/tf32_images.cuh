// Operands as TF32 in a workspace, byte for byte as stages of shared memory want them: any layout, any distance of rows.
//
//     [strip of STRIP rows][32 of k][STRIP rows][32 words]     lines of 128 bytes, 16-byte units swizzled (wgmma.cuh)
//
// Rows of A and columns of B are rows here. What does not exist is zeros.
#pragma once

#include "parts_product.cuh"
#include "tf32.cuh"
#include "tf32_ring.cuh"

constexpr int IMAGE_THREADS = 128, IMAGE_ROWS = 64, IMAGE_DEPTH = 128;  // of one block that copies, and its piece

template <int STRIP>
struct OperandImage {
    static constexpr int STAGE_BYTES = STRIP * 128, STAGES = IMAGE_DEPTH / TF32_DEPTH, PIECES = STRIP / IMAGE_ROWS;

    int rows, depth;
    unsigned strips, blocks;  // of k
    char* memory;

    __device__ __forceinline__ OperandImage(int rows, int depth, char* workspace)
        : rows(rows), depth(depth), strips(ceil_div(rows, STRIP)), blocks(ceil_div(depth, IMAGE_DEPTH)), memory(workspace)
    {
    }

    __device__ __forceinline__ unsigned pieces() const { return strips * blocks * PIECES; }
    __device__ __forceinline__ char* stage(unsigned strip, unsigned number) const
    {
        return memory + (static_cast<Offset>(strip) * blocks * STAGES + number) * STAGE_BYTES;
    }
    __device__ __forceinline__ char* end() const { return stage(strips, 0); }

    // Copies 64 rows x 128 of k. Element (row, k) lies at X[row * ld + k], or at X[k * ld + row] with ACROSS. Pieces that
    // are neighbours in memory follow each other. The block has IMAGE_THREADS threads.
    template <bool ACROSS>
    __device__ __forceinline__ void copy_piece(unsigned piece, const float* X, int ld, char* image) const
    {
        const unsigned per_block = strips * PIECES;
        const unsigned of_rows = ACROSS ? piece % per_block : piece / blocks;
        const unsigned block = ACROSS ? piece / per_block : piece % blocks;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int first_row = static_cast<int>(of_rows) * IMAGE_ROWS, first_k = static_cast<int>(block) * IMAGE_DEPTH;
        const int rows_left = rows - first_row, depth_left = depth - first_k;
        // ALONG: row 16 w + i, k = 32 j + l.     ACROSS: row 32 i + l, k = 32 w + j.
        constexpr int LINES = ACROSS ? 2 : 16, COUNT = ACROSS ? 32 : 4;
        unsigned words[LINES][COUNT];
        const auto row_of = [&](int i) { return ACROSS ? 32 * i + lane : 16 * warp + i; };
        const auto k_of = [&](int j) { return ACROSS ? 32 * warp + j : 32 * j + lane; };
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
#pragma unroll
            for (int i = 0; i < LINES; ++i) {
                const int row = row_of(i), k = k_of(j);
                const Offset at = ACROSS ? (first_k + k) * static_cast<Offset>(ld) + first_row + row
                                         : (first_row + row) * static_cast<Offset>(ld) + first_k + k;
                words[i][j] = to_tf32(row < rows_left && k < depth_left ? X[at] : 0.0f);
            }
        // The image: [32 of k][64 rows][32 words].
        const auto unit_at = [&](int row, int k) {
            return image + (k / 32 * IMAGE_ROWS + row) * 128 + (k % 32 / 4 ^ row % 8) * 16;
        };
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            const int row = row_of(i);
#pragma unroll
            for (int j = 0; j < COUNT; j += ACROSS ? 4 : 1) {
                const int k = k_of(j);
                if constexpr (ACROSS)
                    *reinterpret_cast<uint4*>(unit_at(row, k)) =
                        make_uint4(words[i][j], words[i][j + 1], words[i][j + 2], words[i][j + 3]);
                else
                    *reinterpret_cast<unsigned*>(unit_at(row, k) + k % 4 * 4) = words[i][j];
            }
        }
        publish_to_copies();
        __syncthreads();
        if (threadIdx.x == 0) {
            constexpr int NBYTES = IMAGE_ROWS * 128;
            char* const to = stage(of_rows / PIECES, block * STAGES) + of_rows % PIECES * NBYTES;
            for (int i = 0; i < STAGES; ++i) store_bulk(to + i * STAGE_BYTES, shared_address(image) + i * NBYTES, NBYTES);
            commit_stores();
            wait_until_read();
        }
    }
};

// A ring of stages of both images: X are 128 rows of A, Y are BN columns of B.
template <int BN>
struct ImageRing : Tf32Ring<BN, true> {
    using Ring = Tf32Ring<BN, true>;
    using Ring::Ring;
    static constexpr int NBYTES = Ring::STAGES * (Tf32Stage<BN>::BYTES + 16);

    // All threads of the block come here before the first use.
    __device__ __forceinline__ void open() const
    {
        if (threadIdx.x == 0) this->make_barriers();
        __syncthreads();
    }

    // One thread: copies the next stage when its place is empty.
    __device__ __forceinline__ void load(const char* x, const char* y)
    {
        const auto [stage, full] = this->ask();
        copy_bulk(stage.x, x, stage.X_BYTES, full);
        copy_bulk(stage.y(), y, stage.Y_BYTES, full);
    }
};
