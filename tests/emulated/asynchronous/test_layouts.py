"""Interleaved tensor copies, and rows shorter than their swizzle: every recorded word of a GPU, and its bytes."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import DEVICE

from gemmlab.core.tensor_map import TiledMap
from gemmlab.emulator.form import UnsupportedError
from tensor_layout_probe import RECORD, Look, looks


def tiled(look: Look) -> TiledMap:
    return look.tensor().over(0, look.array.shape, look.array.dtype)


def inside(look: Look) -> bool:
    """True if the copy stays in the array: beyond the tensor's end it would read the memory behind."""
    tensor = tiled(look)
    strides = (tensor.interleave or tensor.type.nbytes, *tensor.strides)
    ends = (
        min(start + (count - 1) * step, extent - 1) * stride
        for start, count, step, extent, stride in zip(
            look.corner, tensor.slices, tensor.element_strides, tensor.shape, strides, strict=True
        )
    )
    return sum(ends) + strides[0] <= look.array.nbytes and prod(look.array.shape) > 0


@pytest.mark.in_turns(20)
@pytest.mark.skipif(not RECORD.exists(), reason="no record of a GPU's copies: makers/tensor_layout_probe.py on a GPU")
def test_recorded_layouts_of_a_gpu() -> None:
    wrong, compared = [], 0
    with np.load(RECORD) as record:
        for look in looks():
            if look.name not in record:
                continue
            recorded = record[look.name]
            if not recorded.size or not inside(look):
                continue
            nbytes = tiled(look).nbytes
            try:
                found = look.words(DEVICE, nbytes)
            except UnsupportedError:  # refused by name until a record tells what a GPU does
                continue
            compared += 1
            if nbytes != recorded[0] or not np.array_equal(found[1:], recorded[1:]):
                wrong.append((look.name, nbytes, int(recorded[0])))
    assert (compared > 150, wrong[:8]) == (True, [])
