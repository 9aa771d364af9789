"""Encode tensor maps (128 bytes) by the CUDA driver."""

from __future__ import annotations

from typing import Any

from gemmlab.core.tensor_map import FILLS, INTERLEAVES, PROMOTIONS, SWIZZLES, TYPES, TiledMap
from gemmlab.devices.cuda_driver import Driver


def encode(driver: Driver, tensor: TiledMap) -> bytes:
    """Return the 128 bytes of a map, made by the driver. Raises `DeviceError` if the driver refuses the map."""
    module = driver.module
    # The driver refuses a null pointer to strides even if the map has one dimension and so no strides.
    strides = tensor.strides or (0,)
    wide = [module.cuuint64_t(value) for value in tensor.shape], [module.cuuint64_t(each) for each in strides]
    narrow = [[module.cuuint32_t(value) for value in values] for values in (tensor.box, tensor.element_strides)]
    interleave, swizzle, promotion, fill = (
        kind(known.index(value))
        for kind, known, value in (
            (module.CUtensorMapInterleave, INTERLEAVES, tensor.interleave),
            (module.CUtensorMapSwizzle, SWIZZLES, tensor.swizzle),
            (module.CUtensorMapL2promotion, PROMOTIONS, tensor.promotion),
            (module.CUtensorMapFloatOOBfill, FILLS, tensor.fill),
        )
    )
    made: Any = driver(
        "cuTensorMapEncodeTiled", module.CUtensorMapDataType(TYPES.index(tensor.type)), len(tensor.shape),
        tensor.address, *wide, *narrow, interleave, swizzle, promotion, fill, what=tensor.describe(),
    )  # fmt: skip
    return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)
