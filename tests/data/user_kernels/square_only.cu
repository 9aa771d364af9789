#include <cuda_runtime.h>
#include <stdio.h>

#define TILE_WIDTH 16

// C = A * B for square matrices whose width is a multiple of TILE_WIDTH.
__global__ void MatMulShared(const float* d_A, const float* d_B, float* d_C, int width)
{
    __shared__ float ds_A[TILE_WIDTH][TILE_WIDTH];
    __shared__ float ds_B[TILE_WIDTH][TILE_WIDTH];

    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int Row = by * TILE_WIDTH + ty;
    int Col = bx * TILE_WIDTH + tx;
    float Pvalue = 0;

    for (int m = 0; m < width / TILE_WIDTH; ++m) {
        ds_A[ty][tx] = d_A[Row * width + m * TILE_WIDTH + tx];
        ds_B[ty][tx] = d_B[(m * TILE_WIDTH + ty) * width + Col];
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k) Pvalue += ds_A[ty][k] * ds_B[k][tx];
        __syncthreads();
    }
    d_C[Row * width + Col] = Pvalue;
}
