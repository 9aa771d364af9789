// Reductions over a block, as several of these kernels need them.
#pragma once

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
    __device__ float identity() const { return 0.0f; }
};
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
    __device__ float identity() const { return -INFINITY; }
};

template <typename Op>
__device__ float warp_reduce(float v, Op op) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

// Every thread gets the result; `scratch` has room for a float a warp.
template <typename Op>
__device__ float block_reduce(float v, float* scratch, Op op) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    v = warp_reduce(v, op);
    if (lane == 0) scratch[warp] = v;
    __syncthreads();
    v = lane < warps ? scratch[lane] : op.identity();
    v = warp_reduce(v, op);
    __syncthreads();
    return v;
}
