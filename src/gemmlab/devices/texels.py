"""One-dimensional textures over linear memory: the bytes of a texel, and the conditions on a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.devices.device import Buffer, Device, TextureDevice, Window

BASE_ALIGNMENT = 512
"""Alignment of a texture's first texel in bytes."""
ELEMENT_BYTES: Mapping[str, int] = {"f32": 4, "f16": 2, "u16": 2, "s16": 2}
MATRIX_TEXEL = 16
"""Bytes of a texel in the texture of a matrix: four float32."""


@dataclass(frozen=True, slots=True)
class Texels:
    """The memory of a texture: `count` texels of `channels` elements each, from `address` on.

    `element` is a name in `ELEMENT_BYTES`.
    """

    address: int
    count: int
    channels: int
    element: str

    @property
    def nbytes(self) -> int:
        """Bytes of all texels."""
        return self.count * self.channels * ELEMENT_BYTES[self.element]


def texels_of(buffer: Buffer, channels: int, element: str, most: int) -> Texels:
    """Return the texels of a buffer, counted from its address rounded down to a multiple of `BASE_ALIGNMENT`.

    A kernel finds the buffer's first element at texel `address % 512 / bytes of a texel`. Bytes that fill no whole
    texel are left out. Raises `UsageError` for an unknown kind of texel, an address that is no multiple of a texel's
    bytes, no whole texel, and more than `most` texels.
    """
    if channels not in (1, 2, 4) or element not in ELEMENT_BYTES:
        raise UsageError(f"a texel of {channels} x {element}; there are 1, 2 or 4 of {', '.join(ELEMENT_BYTES)}")
    size = channels * ELEMENT_BYTES[element]
    if buffer.address % size:
        raise UsageError(
            f"a texture of {size}-byte texels must begin on a multiple of {size}, not at 0x{buffer.address:x}"
        )
    before = buffer.address % BASE_ALIGNMENT
    count = (before + buffer.nbytes) // size
    if not before // size < count <= most:
        raise UsageError(f"a texture of {count} texels with {buffer.nbytes} bytes of data; there are 1 to {most}")
    return Texels(buffer.address - before, count, channels, element)


def owner_of(buffer: Any) -> Any:
    """Return the allocation that a buffer is, or is part of."""
    while isinstance(buffer, Window):
        buffer = buffer.whole
    return buffer


def matrix_texture(device: Device, buffer: Buffer, ld: int) -> int:
    """Return the handle of a texture with four floats per texel over a row-major matrix with rows `ld` floats apart.

    Return 0 if a row would begin within a texel, if the matrix has less than one texel or more than a texture can have,
    or if the device has no textures.
    """
    if not isinstance(device, TextureDevice) or buffer.address % MATRIX_TEXEL or 4 * ld % MATRIX_TEXEL:
        return 0
    texels = (buffer.address % BASE_ALIGNMENT + buffer.nbytes) // MATRIX_TEXEL
    if buffer.nbytes < MATRIX_TEXEL or texels > device.most_texels:
        return 0
    return device.linear_texture(buffer)
