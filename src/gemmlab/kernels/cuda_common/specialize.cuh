// One body of code for both values of a condition that is the same for all threads of a block.
#pragma once

template <bool YES>
struct Known {
    __device__ constexpr operator bool() const { return YES; }
};

// `body(yes)`, where the compiler knows what `yes` is. Tiles that lie inside of their matrices, and these are nearly
// all, then go through code without a comparison:
//
//     specialize(left >= BK, [&](auto whole) { ... whole || k < left ? a[k] : 0.0f ... });
template <class Body>
__device__ __forceinline__ void specialize(bool yes, const Body& body)
{
    if (yes) body(Known<true>());
    else body(Known<false>());
}
