"""Textures on a GPU: the same texels as on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gemmlab import launch
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Window
from support.texture_kernels import FORMS, INDEX, LANES, SOURCE, bits, expected, texels


@pytest.mark.parametrize("kernel", FORMS)
def test_a_fetch_gives_the_texel_bit_by_bit_and_zeros_outside(kernel: str, gpu: CudaDevice) -> None:
    _, _, out, parts = FORMS[kernel]
    outputs: Any = launch(
        SOURCE, kernel, 1, LANES, (texels(kernel), INDEX, np.zeros(LANES * len(parts), out)), device=gpu
    ).outputs
    assert bits(outputs[-1]).tolist() == expected(kernel).tolist()


def test_halves_arrive_as_floats(gpu: CudaDevice) -> None:
    table = np.array([1.5, -0.0, 6e-8, 65504, np.inf, -np.inf, 0.333], np.float16)
    index, out = np.arange(LANES, dtype=np.int32), np.ones(LANES, np.float32)
    outputs: Any = launch(SOURCE, "fetch_float", 1, LANES, (table, index, out), device=gpu).outputs
    assert bits(outputs[-1])[:7].tolist() == bits(table.astype(np.float32)).tolist()
    assert not outputs[-1][7:].any()


def test_a_texture_may_begin_within_its_memory(gpu: CudaDevice) -> None:
    table = np.arange(1024, dtype=np.float32)
    buffer = gpu.upload(table)
    for first in (4, 128, 132):
        window = Window(buffer, 4 * first, 64)
        handle = np.uint64(gpu.linear_texture(window))
        index = (window.address % 512 // 16 + np.arange(LANES) % 4).astype(np.int32)
        outputs: Any = launch(
            SOURCE, "fetch_float4", 1, LANES, (handle, index, np.zeros(4 * LANES, np.float32)), device=gpu
        ).outputs
        assert outputs[-1][:16].tolist() == table[first : first + 16].tolist()
    gpu.free(buffer)


def test_the_limit_is_the_one_of_the_architecture(gpu: CudaDevice) -> None:
    from gemmlab.core.gpu import limits

    assert gpu.most_texels >= limits(gpu.target({})).texture_1d_linear
