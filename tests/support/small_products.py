"""Small products in memory that stand-ins for a GPU and its libraries can see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gemmlab.timing.contestants.contestant import Work
from support.column_major import FakeCublasLt

LAYOUTS = ("nn", "nt", "tn", "tt")
BATCHES = (None, ("", 3), ("a", 3), ("b", 2))
M, N, K = 5, 7, 4


class Memory:
    """A buffer that stand-ins can see."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.nbytes, self.address = values, values.nbytes, int(values.ctypes.data)


class Device:
    """The parts of a `CudaDevice` that contestants use. A call of algorithm i of cublasLt takes `us[i]`."""

    ordinal, stream, id, mode = 0, 9, "cuda:0", "cold"
    us: ClassVar[Mapping[int, float]] = {0: 5.0, 1: 3.0}

    def __init__(self, lt: FakeCublasLt | None = None) -> None:
        self.lt, self.timed = lt, list[int]()

    def activate(self) -> None:
        pass

    def allocate(self, nbytes: int) -> Memory:
        return Memory(np.zeros(min(nbytes, 64), np.uint8))

    def time_enqueued(self, call: Any, repeats: int, _inner: int = 1, _what: str = "") -> list[float]:
        call()
        assert self.lt is not None
        self.timed.append(repeats)
        return [self.us[self.lt.ran[-1]]] * repeats


def product(
    layout: str, batch: tuple[str, int] | None, alpha: float = 1.0, beta: float = 0.0
) -> tuple[Work, dict[str, Any], np.ndarray[Any, Any]]:
    """A problem, its operands in memory, and its result."""
    turned = {"a": layout[0] == "t", "b": layout[1] == "t", "c": False}
    extents = {"a": (M, K), "b": (K, N), "c": (M, N)}
    shared, count = batch or ("", 1)
    scalars: dict[str, Any] = {"m": M, "n": N, "k": K, "alpha": alpha, "beta": beta}
    scalars |= {"trans_a": int(turned["a"]), "trans_b": int(turned["b"])}
    rng = np.random.default_rng(1)
    flat, whole = dict[str, Any](), dict[str, Any]()
    for index, name in enumerate("abc"):
        rows, cols = extents[name][::-1] if turned[name] else extents[name]
        ld, step = cols + 1 + index, 0 if name == shared else rows * (cols + 1 + index) + 2
        scalars[f"ld{name}"] = ld
        if batch:
            scalars |= {f"stride_{name}": step, "batch": count}
        words = rng.random(count * max(step, rows * ld) + 8, dtype=np.float32)
        flat[name] = words
        stack = np.lib.stride_tricks.as_strided(words, (count, rows, cols), (4 * step, 4 * ld, 4))
        whole[name] = stack.swapaxes(1, 2) if turned[name] else stack
    expected = alpha * (whole["a"] @ whole["b"]) + beta * whole["c"]
    matrices = {name: whole[name][0].T if turned[name] else whole[name][0] for name in "abc"}
    work = Work("batch" if batch else "gemm", {}, 1, scalars, flat, matrices, 1)
    work.uploaded["result"] = whole["c"]
    return work, {name: Memory(values) for name, values in flat.items()}, expected


def result(work: Work) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = work.uploaded["result"]
    return found


def any_device(lt: FakeCublasLt | None = None) -> Any:
    return Device(lt)
