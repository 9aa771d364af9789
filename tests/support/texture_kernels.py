"""Kernels that fetch texels in every form the compiler makes of `tex1Dfetch`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

TYPES = {"fetch_float": "float", "fetch_float2": "float2", "fetch_float4": "float4", "fetch_ushort": "unsigned short",
         "fetch_ushort2": "ushort2", "fetch_ushort4": "ushort4", "fetch_short2": "short2"}  # fmt: skip
PARTS = {"part_zw": "texel.z, texel.w", "part_xw": "texel.x, texel.w"}


def _whole(name: str, type_: str) -> str:
    return f"""
extern "C" __global__ void {name}(cudaTextureObject_t texture, const int* index, {type_}* out) {{
    out[threadIdx.x] = tex1Dfetch<{type_}>(texture, index[threadIdx.x]);
}}"""


def _part(name: str, values: str) -> str:
    return f"""
extern "C" __global__ void {name}(cudaTextureObject_t texture, const int* index, float2* out) {{
    const float4 texel = tex1Dfetch<float4>(texture, index[threadIdx.x]);
    out[threadIdx.x] = make_float2({values});
}}"""


_OTHERS = """
extern "C" __global__ void part_xyw(cudaTextureObject_t texture, const int* index, float* out) {
    const float4 texel = tex1Dfetch<float4>(texture, index[threadIdx.x]);
    out[3 * threadIdx.x] = texel.x;
    out[3 * threadIdx.x + 1] = texel.y;
    out[3 * threadIdx.x + 2] = texel.w;
}

extern "C" __global__ void fetch_some(cudaTextureObject_t texture, int n, float4* out) {
    float4 texel = make_float4(1, 2, 3, 4);
    if (threadIdx.x % 3 == 0 && threadIdx.x < n) texel = tex1Dfetch<float4>(texture, threadIdx.x);
    out[threadIdx.x] = texel;
}

extern "C" __global__ void fetch_either(cudaTextureObject_t even, cudaTextureObject_t odd, float* out) {
    out[threadIdx.x] = tex1Dfetch<float>(threadIdx.x & 1 ? odd : even, threadIdx.x);
}
"""
SOURCE = "".join([*(_whole(*each) for each in TYPES.items()), *(_part(*each) for each in PARTS.items()), _OTHERS])

FORMS: dict[str, tuple[type[np.generic], int, type[np.generic], tuple[int, ...]]] = {
    "fetch_float": (np.float32, 1, np.float32, (0,)),
    "fetch_float2": (np.float32, 2, np.float32, (0, 1)),
    "fetch_float4": (np.float32, 4, np.float32, (0, 1, 2, 3)),
    "part_zw": (np.float32, 4, np.float32, (2, 3)),
    "part_xw": (np.float32, 4, np.float32, (0, 3)),
    "part_xyw": (np.float32, 4, np.float32, (0, 1, 3)),
    "fetch_ushort": (np.uint16, 1, np.uint16, (0,)),
    "fetch_ushort2": (np.uint16, 2, np.uint16, (0, 1)),
    "fetch_ushort4": (np.uint16, 4, np.uint16, (0, 1, 2, 3)),
    "fetch_short2": (np.int16, 2, np.int16, (0, 1)),
}
"""Of each kernel: what its texture holds, values a texel, what comes out, and which of a texel's values."""
TEXELS, LANES = 40, 64
INDEX = np.array([0, 39, 40, -1, 41, 2**28, -(2**31), 2**31 - 1, *np.random.default_rng(5).integers(0, 40, 56)], "i4")


def texels(kernel: str) -> npt.NDArray[Any]:
    """Random bits, NaN and denormals among them."""
    dtype, channels, _, _ = FORMS[kernel]
    raw = np.random.default_rng(3).integers(0, 256, TEXELS * channels * np.dtype(dtype).itemsize, np.uint8)
    table = raw.view(dtype).reshape(TEXELS, channels)
    if dtype is np.float32:
        table.view(np.uint32)[:5, 0] = 0x7FC12345, 0xFF800001, 0x00000001, 0x807FFFFF, 0x80000000
    return table


def expected(kernel: str) -> npt.NDArray[Any]:
    """Bits of what each thread gets: its texel's values, zeros where there is no such texel."""
    _, _, out, parts = FORMS[kernel]
    table, inside = texels(kernel), (INDEX >= 0) & (INDEX < TEXELS)
    taken = np.where(inside[:, None], bits(table)[np.where(inside, INDEX, 0)][:, parts], 0)
    return taken.astype(bits(np.empty(0, out)).dtype).reshape(-1)


def bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same bits as unsigned integers."""
    return array.view(f"u{array.itemsize}")
