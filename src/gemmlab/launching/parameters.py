"""A kernel's arguments: Python and NumPy values, checked against its parameters' sizes and, if known, types."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import device_array, is_device_array
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.tensor_map import BYTES
from gemmlab.core.words import shown
from gemmlab.devices.device import Buffer, Device, TensorMapDevice, TextureDevice
from gemmlab.kernels.cuda_file.c_types import C_TYPES, TEXTURE_TYPE
from gemmlab.kernels.cuda_file.signature import Signature
from gemmlab.launching.pointers import fits
from gemmlab.launching.tensor_argument import TensorMap
from gemmlab.toolchain.nv_info import Param

POINTER_BYTES = 8
_WHOLE = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_REAL = {2: np.float16, 4: np.float32, 8: np.float64}
_TEXELS = {"<f4": "f32", "<f2": "f16", "<u2": "u16", "<i2": "s16"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel: its size in bytes and, if known, its name and type."""

    place: str
    """The parameter in words, as errors name it."""
    size: int
    type: str
    """C type without qualifiers; empty if only the size is known."""

    @property
    def takes_address(self) -> bool | None:
        """True if the parameter is a pointer, false if it is none; `None` if unknown."""
        if self.type.endswith("*"):
            return True
        return False if self.type in C_TYPES or self.size != POINTER_BYTES else None


def parameters(kernel: str, sizes: Sequence[Param], signature: Signature | None) -> list[Parameter]:
    """Return a kernel's parameters: sizes from its machine code, types and names from its source, if there is one that
    has as many.
    """
    stated = signature.args if signature is not None and len(signature.args) == len(sizes) else None
    found = []
    for index, param in enumerate(sizes):
        name = stated[index].name if stated else ""
        place = f"{kernel}: argument {index + 1}" + (f" ({stated[index]})" if stated and name else "")
        found.append(Parameter(place, param.size, stated[index].type if stated else ""))
    return found


def in_order(
    kernel: str, args: Sequence[Any] | Mapping[str, Any], sizes: Sequence[Param], signature: Signature | None
) -> list[Any]:
    """Return the arguments as a list in the kernel's order. Arguments passed by name are sorted by the names in the
    kernel's source; if these are unknown, they stay in the caller's order.

    Raises `UsageError` that lists unknown and missing names.
    """
    if not isinstance(args, Mapping):
        return list(args)
    stated = signature.args if signature is not None and len(signature.args) == len(sizes) else ()
    names = [argument.name for argument in stated]
    if signature is None or not all(names) or len(set(names)) != len(sizes):
        return list(args.values())
    unknown, missing = [name for name in args if name not in names], [name for name in names if name not in args]
    if unknown or missing:
        problems = [f"unknown {', '.join(map(str, unknown))}"] if unknown else []
        problems += [f"missing {', '.join(missing)}"] if missing else []
        raise UsageError(f"{kernel}: arguments by name: {'; '.join(problems)}; the kernel is {signature}")
    return [args[name] for name in names]


class Bound:
    """Arguments on a device. An array that is passed twice is one buffer; the caller's arrays are never written to."""

    def __init__(self, device: Device, takes: Sequence[Parameter], values: Sequence[Any], kernel: str) -> None:
        if len(values) != len(takes):
            sizes = ", ".join(str(parameter.size) for parameter in takes)
            raise UsageError(f"{kernel} takes {len(takes)} arguments (of {sizes} bytes); {len(values)} were given")
        self._device = device
        self._buffers: dict[int, tuple[Buffer, npt.NDArray[Any]]] = {}
        self._arrays: list[int | None] = []
        self.values: list[Any] = []
        """The arguments in the kernel's order: a buffer for an array, a NumPy scalar for a texture or anything else."""
        try:
            for parameter, value in zip(takes, values, strict=True):
                self._add(parameter, value)
        except BaseException:
            self.free()
            raise

    def _add(self, parameter: Parameter, value: Any) -> None:
        if isinstance(value, TensorMap):
            self._arrays.append(id(value.array))
            self.values.append(self._tensor_map(parameter, value))
        elif isinstance(value, np.ndarray) or is_device_array(value):
            if parameter.takes_address is False and parameter.type != TEXTURE_TYPE:
                what = parameter.type or f"of {parameter.size} bytes"
                hint = "; a tensor map is gemmlab.TensorMap(array, box)" if parameter.size == BYTES else ""
                raise ArgumentTypeError(f"{parameter.place} is an array, but the parameter is {what}, no pointer{hint}")
            if id(value) not in self._buffers:
                self._buffers[id(value)] = self._copy(parameter, value)
            self._arrays.append(id(value))
            buffer, array = self._buffers[id(value)]
            if parameter.takes_address and not fits(parameter.type, array.dtype):
                raise ArgumentTypeError(
                    f"{parameter.place} has dtype {array.dtype}; the kernel takes {parameter.type} (an array of "
                    "another type can be converted with astype, its bytes be shown as another with view)"
                )
            self.values.append(self._texture(parameter, buffer, array) if parameter.type == TEXTURE_TYPE else buffer)
        else:
            self._arrays.append(None)
            self.values.append(scalar(parameter, value))

    def _tensor_map(self, parameter: Parameter, value: TensorMap) -> np.void:
        """Return the 128 bytes of a tensor map over the copy of its array."""
        if parameter.size != BYTES:
            what = parameter.type or f"of {parameter.size} bytes"
            raise ArgumentTypeError(f"{parameter.place} is a tensor map of {BYTES} bytes, but the parameter is {what}")
        if not isinstance(self._device, TensorMapDevice):
            raise ArgumentTypeError(f"{parameter.place} is a tensor map; {self._device.id} has no tensor maps")
        if not isinstance(value.array, np.ndarray) and not is_device_array(value.array):
            raise ArgumentTypeError(f"{parameter.place} is a tensor map over a {type(value.array).__name__}, no array")
        if id(value.array) not in self._buffers:
            self._buffers[id(value.array)] = self._copy(parameter, value.array)
        buffer, array = self._buffers[id(value.array)]
        return np.void(self._device.tensor_map(value.over(int(buffer.address), array.shape, array.dtype)))

    def _texture(self, parameter: Parameter, buffer: Buffer, array: npt.NDArray[Any]) -> np.uint64:
        """Return the handle of a texture over an array: a texel is one value of a vector, or a row of 1, 2 or 4 values
        of a matrix.
        """
        if not isinstance(self._device, TextureDevice):
            raise ArgumentTypeError(f"{parameter.place} is a texture; {self._device.id} has no textures")
        channels = array.shape[1] if array.ndim == 2 else 1
        if array.ndim not in (1, 2) or channels not in (1, 2, 4) or array.dtype.str not in _TEXELS:
            what = f"{array.dtype} of shape {array.shape}"
            raise ArgumentTypeError(
                f"{parameter.place} is {what}; a texture lies over float32, float16, uint16 or int16 of shape (n,), "
                "(n, 1), (n, 2) or (n, 4)"
            )
        return np.uint64(self._device.linear_texture(buffer, channels, _TEXELS[array.dtype.str]))

    def _copy(self, parameter: Parameter, value: Any) -> tuple[Buffer, npt.NDArray[Any]]:
        """Return a buffer on the device with the array's elements in C order, and a NumPy array of the same shape, into
        which `outputs` copies the buffer.
        """
        if not isinstance(value, np.ndarray):
            if self._device.family != "cuda":
                raise ArgumentTypeError(f"{parameter.place} lies on a GPU; the kernel runs on {self._device.id}")
            found = device_array(value)
            return self._device.upload(value), np.empty(found.shape, found.dtype)
        if value.dtype.hasobject or not value.dtype.isnative:
            raise ArgumentTypeError(f"{parameter.place} has dtype {value.dtype.str}, which no kernel can read")
        copy = np.array(value, order="C", copy=True, subok=False)
        return self._device.upload(copy), copy

    def outputs(self) -> list[npt.NDArray[Any] | None]:
        """Return for each argument a copy of its array, or of its tensor map's, from the device; `None` without one."""
        copies: dict[int, npt.NDArray[Any]] = {}
        for key, (buffer, array) in self._buffers.items():
            self._device.download(buffer, array.reshape(-1))
            copies[key] = array
        return [None if key is None else copies[key] for key in self._arrays]

    def free(self) -> None:
        """Free the buffers on the device that hold the arguments' arrays."""
        for buffer, _ in self._buffers.values():
            self._device.free(buffer)
        self._buffers.clear()


def scalar(parameter: Parameter, value: Any) -> np.generic:
    """Return a value as the kernel receives it.

    A NumPy scalar must have the parameter's size and, if the type is known, be a float exactly if the type is one. A
    Python number is converted to the parameter's type; if only the size is known, to an integer or float of this size.
    `None` is a null pointer. Raises `ArgumentTypeError`, and `UsageError` for a number that does not fit.
    """
    known = C_TYPES.get(parameter.type)
    if value is None:
        if parameter.size != POINTER_BYTES or parameter.takes_address is False:
            raise ArgumentTypeError(f"{parameter.place} is None, and the parameter is no pointer")
        return np.uint64(0)
    if parameter.takes_address:
        raise ArgumentTypeError(f"{parameter.place} is a {type(value).__name__}; a pointer takes an array or None")
    if isinstance(value, np.generic):
        if value.nbytes != parameter.size:
            raise ArgumentTypeError(
                f"{parameter.place} is {value.dtype} of {value.nbytes} bytes; the kernel takes {parameter.size}"
            )
        if known is not None and (value.dtype.kind == "f") != (np.dtype(known).kind == "f"):
            raise ArgumentTypeError(f"{parameter.place} is {value.dtype}; the kernel takes {parameter.type}")
        return value
    if not isinstance(value, numbers.Real):
        raise ArgumentTypeError(
            f"{parameter.place} is a {type(value).__name__}; a kernel takes arrays, NumPy scalars, numbers and None"
        )
    kind = known or (_WHOLE if isinstance(value, numbers.Integral) else _REAL).get(parameter.size)
    if kind is None:
        raise ArgumentTypeError(
            f"{parameter.place} is a {type(value).__name__}; for a parameter of {parameter.size} bytes pass a NumPy "
            "scalar of that size"
        )
    return _fitting(parameter, value, np.dtype(kind), exact=known is not None)


def _fitting(parameter: Parameter, value: Any, dtype: np.dtype[Any], *, exact: bool) -> np.generic:
    if dtype.kind != "f":
        if not isinstance(value, numbers.Integral):
            raise ArgumentTypeError(
                f"{parameter.place} is {shown(value)}; the kernel takes {parameter.type or 'an integer'}"
            )
        number = int(value)
        if dtype.kind == "b":
            return np.bool_(number)
        bounds = np.iinfo(dtype)
        least, most = int(bounds.min), int(bounds.max)
        if not exact:
            # For an unknown type only the size counts: the bits of an unsigned value fit as well.
            most = 2 ** (8 * dtype.itemsize) - 1
        if not least <= number <= most:
            raise UsageError(f"{parameter.place} is {shown(number)}, which {dtype} cannot hold")
        bits = np.array(number % 2 ** (8 * dtype.itemsize), f"u{dtype.itemsize}")
        return cast("np.generic", bits.view(dtype)[()])
    try:
        with np.errstate(over="raise"):
            return cast("np.generic", np.array(float(value), dtype)[()])
    except (OverflowError, FloatingPointError) as error:
        raise UsageError(f"{parameter.place} is {shown(value)}, which {dtype} cannot hold") from error
