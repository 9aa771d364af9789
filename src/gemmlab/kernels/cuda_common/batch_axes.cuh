// The leading axes of a batch, by value: they come in the constant bank beside the other arguments, so nothing has to be
// copied to the GPU before the launch, and nothing has to stay alive after it.
#pragma once

#include "tile.cuh"

// Steps are elements from one matrix to the next along the axis, 0 where an operand has the same matrix for all of it.
// An axis that is not there has extent 1.
struct BatchAxis {
    long long a, b, c;
    unsigned extent;
    unsigned unused;
};
struct BatchAxes {
    BatchAxis axis[4];  // the innermost first
};

// Moves the operands from the first product to product number `product`, which is taken apart into a place on each axis
// as digits are taken from a number:
//
//   axes 5 x 3, product 7:    7 % 3 = 1 on the inner one, 7 / 3 = 2 on the outer one
__device__ __forceinline__ void go_to_product(
    unsigned product, const BatchAxes& axes, const float*& A, const float*& B, float*& C)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const BatchAxis& axis = axes.axis[i];
        if (axis.extent == 1) continue;
        const Offset place = product % axis.extent;
        product /= axis.extent;
        A += place * axis.a;
        B += place * axis.b;
        C += place * axis.c;
    }
}
