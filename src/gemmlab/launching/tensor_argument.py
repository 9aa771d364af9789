"""A tensor map as a kernel's argument: an array, and the box that one copy moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.tensor_map import BY_NAME, ElementType, TiledMap, packed_strides


@dataclass(frozen=True, slots=True, eq=False)
class TensorMap:
    """A tensor map (`const __grid_constant__ CUtensorMap`) over an array, for `gemmlab.launch`.

    The tensor has 1 to 5 axes: those of `array`, unless `shape` and `strides` give others. `array` is copied to the
    device in C order, like any array argument; it may also be an argument of its own, which is then the same memory.
    `box` has the elements that one copy spans along each axis, in the order of the tensor's axes; the last axis is the
    contiguous one (the driver's first dimension).

    `swizzle` is 0, 32, 64 or 128, `interleave` 0, 16 or 32, `promotion` (of requests to the level-2 cache) 0, 64, 128
    or 256, all in bytes; `fill` is `"zeros"` or `"nan"`. With an element stride of n every n-th element along an axis
    is copied; along the last axis it counts only with `interleave`. `element_strides` has one for each axis. `dtype`
    names the type as the driver does, in lower case (`"bfloat16"`, `"float32_ftz"`, `"tfloat32"`), unless it is the
    array's own. `shape` is the tensor's extent along each axis, if the array is padded. With `strides`, in elements,
    the tensor of this `shape` may have any layout in the array: strips of 64 columns of a matrix with rows of k
    elements are `shape=(k // 64, rows, 64), strides=(64, k, 1)`, and `box` has as many extents. If the driver would
    refuse the map, the launch raises a `UsageError` that says why.
    """

    array: Any
    box: Sequence[int]
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zeros"
    element_strides: Sequence[int] | None = None
    dtype: str | None = None
    promotion: int = 0
    shape: Sequence[int] | None = None
    strides: Sequence[int] | None = None

    def over(self, address: int, shape: tuple[int, ...], dtype: Any) -> TiledMap:
        """Return the map for a copy of the array at `address`, of this `shape` and `dtype`.

        Raises `UsageError` if the driver would refuse it or if it is not inside the array, `ArgumentTypeError` for a
        type that tensor maps do not have or that is not of the array's size.
        """
        kind = self._type(dtype)
        extents = tuple(self.shape) if self.shape is not None else shape
        steps = self.element_strides if self.element_strides is not None else (1,) * len(extents)
        if self.strides is not None:
            strides = tuple(kind.nbytes * stride for stride in _reversed(self._within(extents, shape)))[1:]
        elif len(extents) != len(shape) or any(mine > all_ for mine, all_ in zip(extents, shape, strict=False)):
            raise UsageError(f"tensor map: shape {extents} is not inside the array of shape {shape}")
        else:
            strides = packed_strides(_reversed(shape), kind.nbytes)
        found = TiledMap(
            type=kind, address=address, shape=_reversed(extents), strides=strides, box=_reversed(self.box),
            element_strides=_reversed(steps), interleave=self.interleave, swizzle=self.swizzle,
            promotion=self.promotion, fill=self.fill,
        )  # fmt: skip
        found.require_valid()
        return found

    def _within(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the checked `strides`. Raises `UsageError` if they are not one per axis, none negative and the last 1,
        and if the tensor of these extents is not inside an array of `shape`.
        """
        strides = tuple(int(stride) for stride in self.strides or ())
        if len(strides) != len(extents) or strides[-1:] != (1,) or min(strides) < 0:
            raise UsageError(f"tensor map: strides {strides} of shape {extents}: there must be one an axis, the last 1")
        last = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
        beyond = last + 1 - math.prod(shape)
        if beyond > 0:
            raise UsageError(
                f"tensor map: shape {extents} with strides {strides} ends {beyond} elements behind the array of "
                f"shape {shape}"
            )
        return strides

    def _type(self, dtype: Any) -> ElementType:
        name = (self.dtype or str(dtype)).upper()
        kind = BY_NAME.get(name)
        if kind is None:
            known = ", ".join(each.lower() for each in BY_NAME)
            raise ArgumentTypeError(f"tensor map: no elements of type {name.lower()}; there are {known}")
        if kind.nbytes != dtype.itemsize:
            raise ArgumentTypeError(f"tensor map: {name.lower()} has {kind.nbytes} bytes, the array's {dtype} has not")
        return kind


def _reversed(values: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(value) for value in reversed(values))
