// A matrix seen as texels of four elements, for `tex1Dfetch<float4>`.
//
// An argument `cudaTextureObject_t A_tex` is a texture over the matrix A, or 0 where there can be none: where rows do
// not begin with a texel (16 bytes of floats, 8 of halves), or where there are more texels than a texture can have
// (2^27 or 2^28, by GPU: an index has 32 bits where a pointer has 64). It has whole texels only, up to the end of the
// last row.
#pragma once

#include "tile.cuh"

// The texel that begins with element `at` of the matrix at `base`. Texel 0 lies at a multiple of 512 bytes, as GPUs
// want it, and so at or before the first element.
template <class Element>
__device__ __forceinline__ int texel_of(const Element* base, Offset at)
{
    const int before = reinterpret_cast<unsigned long long>(base) % 512 / (4 * sizeof(Element));
    return before + static_cast<int>(at / 4);
}

// The same handle in all lanes, and the compiler knows it: else it fetches lane by lane, in case that they differ.
__device__ __forceinline__ cudaTextureObject_t of_warp(cudaTextureObject_t texture)
{
    return __shfl_sync(0xffffffff, texture, 0);
}
