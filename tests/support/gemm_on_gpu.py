"""A GPU's library call without a GPU: a driver that is played, matrices, and the emulator in place of its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices import cuda, cuda_context, cuda_driver
from gemmlab.devices.cuda_driver import Driver
from gemmlab.devices.device import Window
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.dispatch import cuda_again, cuda_calls, cuda_gemm, cuda_group_again, cuda_groups, scratch
from gemmlab.toolchain.build_cuda import build
from support.gemm_driver import GemmDriver, rows, uncompiled
from support.gpu_arrays import OnGpu

Float32Array = npt.NDArray[np.float32]
RNG = np.random.default_rng(5)


def uniform(*shape: int) -> Float32Array:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


A, B, C = uniform(12, 20), uniform(20, 8), uniform(12, 8)
"""Every test may read them and none writes."""


def played_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    """A driver that multiplies, with nothing known yet of any call: the body of a fixture."""
    fake = GemmDriver()
    opened = Driver(fake)
    for module in (cuda_context, cuda_driver, cuda_calls, cuda_groups, scratch):
        monkeypatch.setattr(module, "open_driver", lambda: opened)
    monkeypatch.setattr(cuda, "for_gpu", uncompiled)
    monkeypatch.setattr(cuda_gemm, "_gemms", {})
    monkeypatch.setattr(cuda_again, "_entries", {})
    monkeypatch.setattr(cuda_again, "_packages", {})
    monkeypatch.setattr(cuda_group_again, "_entries", {})
    monkeypatch.setattr(cuda_group_again, "_packages", {})
    yield fake
    cuda_gemm._gemms.clear()


def values(result: Any) -> Float32Array:
    if isinstance(result, OnGpu):
        return result.values
    shown = result.__cuda_array_interface__
    shape = shown["shape"]
    return rows(shown["data"][0], 1, int(np.prod(shape)), 1).reshape(shape)


def close(found: Any, expected: Any) -> None:
    assert values(found).shape == expected.shape
    np.testing.assert_allclose(values(found), expected, rtol=1e-4, atol=1e-5)


def forms(x: Float32Array) -> dict[str, Float32Array]:
    """The same matrix as it may lie in memory."""
    m, n = x.shape
    wide, tall = np.full((m, n + 4), np.nan, np.float32), np.full((n, m + 3), np.nan, np.float32)
    wide[:, 2 : n + 2], tall[:, 1 : m + 1] = x, x.T
    return {
        "rows": x.copy(),
        "columns": np.asfortranarray(x),
        "part of rows": wide[:, 2 : n + 2],
        "of columns": tall[:, 1:-2].T,
    }


def emulate(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, out: Float32Array, *arrays: Float32Array) -> list[str]:
    """From now on the emulator runs each launch as it reaches the driver: arguments, grid, block, instance.

    `out` is what kernels write to, `arrays` is all else that they are given. The list gets the names of what ran.
    """
    artifacts: dict[str, Artifact] = {}
    ran: list[str] = []
    emulated = EmulatedDevice("sm_90")
    wholes = [x if x.base is None else np.asarray(x.base) for x in (out, *arrays)]

    def kept(program: Program) -> Artifact:
        artifact = build(program)
        return artifacts.setdefault(artifact.entry, artifact)

    def run(name: str, *arguments: Any) -> None:
        _, *extents, smem, _ = driver.launches[-1]
        buffers = [emulated.upload(whole.ravel("K")) for whole in wholes]
        values: list[Any] = []
        for argument in arguments:
            if isinstance(argument, bytes):
                values.append(np.void(argument))
                continue
            offsets = [argument - whole.ctypes.data for whole in wholes]
            at = next((i for i, offset in enumerate(offsets) if 0 <= offset < wholes[i].nbytes), None)
            if at is None:
                values.append(np.float32(argument) if isinstance(argument, float) else np.int32(argument))
            else:
                values.append(Window(buffers[at], offsets[at], wholes[at].nbytes - offsets[at]))
        launch = Launch(tuple(values), tuple(extents[:3]), tuple(extents[3:6]), smem)
        emulated.launch(emulated.load(artifacts[name]), launch)
        written = np.empty(wholes[0].size, np.float32)
        emulated.download(buffers[0], written)
        wholes[0].ravel("K")[...] = written
        ran.append(name)

    monkeypatch.setattr(cuda, "for_gpu", kept)
    driver.multiply = run
    driver.multiply_batch = driver.multiply_group = lambda _one, *given: run(*given)
    return ran
