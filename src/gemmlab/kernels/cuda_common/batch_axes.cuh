// The leading axes of a batch, by value: they come in the constant bank beside the other arguments, so nothing has to be
// copied to the GPU before the launch, and nothing has to stay alive after it.
#pragma once

#include "tile.cuh"

// Steps are elements from one matrix to the next along the axis, 0 where an operand has the same matrix for all of it.
// An unused axis has extent 1.
struct BatchAxis {
    long long a, b, c;
    unsigned extent;
    unsigned unused;
};
struct BatchAxes {
    BatchAxis axis[4];  // the innermost first
};

// The offset of product number `product`'s matrix from that of the first product, in elements: A, B or C if OPERAND is
// 0, 1 or 2. The number gives an index on each axis, as a number in positional notation gives its digits:
//
//   axes 5 x 3, product 7:    7 % 3 = 1 on the inner one, 7 / 3 = 2 on the outer one
template <int OPERAND>
__device__ __forceinline__ Offset way_to_product(unsigned product, const BatchAxes& axes)
{
    Offset way = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const BatchAxis& axis = axes.axis[i];
        if (axis.extent == 1) continue;
        way += product % axis.extent * (OPERAND == 0 ? axis.a : OPERAND == 1 ? axis.b : axis.c);
        product /= axis.extent;
    }
    return way;
}
