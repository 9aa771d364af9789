"""Arrays of other packages on a GPU: what their description comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from gemmlab.arrays.on_gpu import UNKNOWN, device_array, is_device_array
from gemmlab.core.errors import ArgumentTypeError


@dataclass
class Array:
    """Something that shows memory as a GPU package does; none is touched here."""

    shape: tuple[int, ...] = (4, 6)
    typestr: str = "<f4"
    strides: tuple[int, ...] | None = None
    version: int = 3
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        known = {"shape": self.shape, "typestr": self.typestr, "data": (0x7000, False), "strides": self.strides}
        return {**known, "version": self.version, **self.more}


def test_shape_strides_dtype_and_stream_are_read() -> None:
    found = device_array(Array(more={"stream": 7}))
    assert (found.pointer, found.shape, found.strides, str(found.dtype)) == (0x7000, (4, 6), (24, 4), "float32")
    assert (found.nbytes, found.stream, found.contiguous, found.read_only) == (96, 7, True, False)


def test_ready_and_unknown_are_told_apart() -> None:
    assert device_array(Array(more={"stream": None})).stream is None
    assert device_array(Array(version=2)).stream == UNKNOWN


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous"),
    [
        ((4, 6), (24, 4), True),
        ((4, 6), (4, 16), False),
        ((4, 6), (32, 4), False),
        ((1, 6), (999, 4), True),
        ((4, 1), (4, 999), True),
        ((0, 6), (1, 1), True),
        ((), (), True),
        ((4,), (-4,), False),
    ],
)
def test_contiguity(shape: tuple[int, ...], strides: tuple[int, ...], contiguous: bool) -> None:
    assert device_array(Array(shape, strides=strides)).contiguous is contiguous


def test_what_lies_on_a_gpu_and_what_does_not() -> None:
    class Tensor:
        def __init__(self, kind: int) -> None:
            self.kind = kind

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.kind, 0

    assert is_device_array(Array())
    assert is_device_array(Tensor(2))
    for other in (Tensor(1), np.zeros(3), np.float32(1), 3, [1.0]):
        assert not is_device_array(other)


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"numpy\.ndarray is not an array on a GPU"):
        device_array(np.zeros(3))
    with pytest.raises(ArgumentTypeError, match="masked"):
        device_array(Array(more={"mask": Array()}))
    with pytest.raises(ArgumentTypeError, match=">f4"):
        device_array(Array(typestr=">f4"))

    class Guarded:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("can't get the interface of a Variable that requires grad")

    with pytest.raises(ArgumentTypeError, match="requires grad"):
        device_array(Guarded())
