"""A device whose kernels are Python functions, and GEMM kernels for it: a right one and ones broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices.device import Buffer, DeviceInfo, Loaded, Window
from gemmlab.devices.device_name import CPU, DeviceIdentity, DeviceName
from gemmlab.kernels import catalog
from gemmlab.kernels.kernel import Kernel

GEMM_ARGS = ("m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc", "trans_a", "trans_b")
GemmBody = Callable[["Gemm"], None]


@dataclass(frozen=True)
class FakeBuffer:
    array: npt.NDArray[Any]

    @property
    def address(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


@dataclass(frozen=True)
class FakeLoaded:
    artifact: Artifact


@dataclass
class FakeDevice(DeviceIdentity):
    """Runs the body registered under the kernel's id."""

    bodies: dict[str, Callable[[tuple[Any, ...]], None]] = field(default_factory=dict)
    device_name: DeviceName = CPU

    def describe(self) -> DeviceInfo:
        return DeviceInfo("cpu", "fake")

    def target(self, config: Mapping[str, int]) -> str:
        del config
        return "fake"

    def build(self, program: Program) -> Artifact:
        return Artifact(program.kernel, "object", program.target, program.entry, b"", "", "none")

    def load(self, artifact: Artifact) -> Loaded:
        return FakeLoaded(artifact)

    def allocate(self, nbytes: int) -> Buffer:
        return FakeBuffer(np.empty(nbytes, np.uint8))

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        return FakeBuffer(array)

    def free(self, buffer: Buffer) -> None:
        assert isinstance(buffer, FakeBuffer)

    def download(self, buffer: Buffer, out: npt.NDArray[Any]) -> None:
        assert isinstance(buffer, FakeBuffer)
        assert out.size == buffer.array.size

    def launch(self, loaded: Loaded, launch: Launch) -> None:
        self.bodies[loaded.artifact.kernel](launch.args)

    def time(self, loaded: Loaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        for _ in range(repeats * inner):
            self.launch(loaded, launch)
        return [1.0] * repeats


@dataclass
class Gemm:
    """The arguments of one call, and views of the matrices."""

    m: int
    n: int
    k: int
    alpha: np.float32
    beta: np.float32
    ldc: int
    a: npt.NDArray[np.float32]
    b: npt.NDArray[np.float32]
    c: npt.NDArray[np.float32]
    flat: Mapping[str, npt.NDArray[np.float32]]

    def beyond(self, name: str, words: int) -> None:
        """Write one word at an offset from the operand's first element, past its end or before its start."""
        address = self.flat[name].__array_interface__["data"][0] + 4 * words
        import ctypes

        ctypes.c_float.from_address(address).value = 7.0


def _gemm(args: tuple[Any, ...]) -> Gemm:
    given = {name: _array(value) for name, value in zip(GEMM_ARGS, args, strict=True)}
    m, n, k = (int(given[name]) for name in "mnk")

    def matrix(name: str, rows: int, cols: int) -> npt.NDArray[np.float32]:
        flat, ld = given[name], int(given[f"ld{name}"])
        if not flat.size:
            return np.empty((rows, cols), np.float32)
        return np.lib.stride_tricks.as_strided(flat, (rows, cols), (4 * ld, 4))

    a = matrix("a", k, m).T if given["trans_a"] else matrix("a", m, k)
    b = matrix("b", n, k).T if given["trans_b"] else matrix("b", k, n)
    return Gemm(m, n, k, given["alpha"], given["beta"], int(given["ldc"]), a, b, matrix("c", m, n),
                {name: given[name] for name in "abc"})  # fmt: skip


def _array(value: Any) -> Any:
    """A buffer's float32 words, a scalar itself."""
    if isinstance(value, Window):
        raw = _array(value.whole).view(np.uint8)
        return raw[value.offset : value.offset + value.nbytes].view(np.float32)
    return value.array if isinstance(value, FakeBuffer) else value


def right(call: Gemm) -> None:
    """What every kernel must do."""
    with np.errstate(all="ignore"):
        added = np.zeros((call.m, call.n), np.float32) if call.beta == 0 else call.beta * call.c
        if call.alpha != 0 and call.k:
            added = call.alpha * product(call.a, call.b) + added
        call.c[...] = added


def product(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A product that skips no zeros, by rank-1 updates."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for index in range(a.shape[1]):
        total += np.multiply.outer(a[:, index], b[index])
    return total


def make_kernel(
    kernel_id: str, device: FakeDevice, body: GemmBody, layouts: tuple[str, ...] = ("nn",), *, threaded: bool = False
) -> Kernel:
    """A kernel named `kernel_id` that runs `body` on `device`."""
    device.bodies[kernel_id] = lambda args: body(_gemm(args))
    return Kernel(
        id=kernel_id, op="gemm", device="cpu", step=0, summary="a fake", idea="none", source="test", params={"TILE": 4},
        args=GEMM_ARGS, path=Path(__file__), layouts=layouts, threaded=threaded,
        make_program=lambda _config, target: Program(kernel_id, "llvm", target, "entry", "0", lambda: ""),
    )  # fmt: skip


def ship(monkeypatch: pytest.MonkeyPatch, kernels: tuple[Kernel, ...]) -> None:
    """Make `kernels` those that the package has."""
    monkeypatch.setattr(catalog, "_catalog", cache(lambda: catalog._Catalog(kernels, {})))
