"""The best of cublasLt's first heuristics, through ctypes: the speed for a caller who times them at every shape.

cublasLt lists algorithms by how fast it expects them to be, and cuBLAS runs the first. Here the first 16 are timed at
each shape, and the fastest becomes the contestant. Its time is only quoted, without comparisons, because no library
call times algorithms.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gemmlab.core.errors import PeerError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.timing.contestants.contestant import UnsupportedError, Work, call_for
from gemmlab.timing.contestants.cublas import require_int32_extents, version_text
from gemmlab.timing.contestants.status_library import StatusLibrary

HEURISTICS = 16
"""The number of algorithms to request from cublasLt, which may list fewer."""
WORKSPACE_BYTES = 32 << 20
"""Scratch memory that an algorithm may use: cuBLAS's own default on GPUs of compute capability 9.0."""
REPEATS, LONG_US = 5, 10_000.0
"""Each algorithm is timed by the median of `REPEATS` calls after a first one, or by the first one alone if it takes
`LONG_US` microseconds or longer.
"""
_FLOAT32, _COMPUTE_FLOAT32 = 0, 68
"""`CUDA_R_32F`, and `CUBLAS_COMPUTE_32F`: float32 arithmetic, no TF32."""
_TRANS_A, _TRANS_B = 3, 4
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
_MOST_WORKSPACE = 1


class _Heuristic(ctypes.Structure):
    """The C structure `cublasLtMatmulHeuristicResult_t`: one algorithm that cublasLt lists."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8), ("workspace_bytes", ctypes.c_size_t), ("state", ctypes.c_int),
        ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4),
    )  # fmt: skip


class CublasLtCall:
    """`cublasLtMatmul` with the algorithm that was the fastest at the shape."""

    def __init__(self, path: str, device: CudaDevice) -> None:
        device.activate()
        self._device, self._library = device, StatusLibrary(path)
        self._library.functions.cublasLtGetVersion.restype = ctypes.c_size_t
        self._handle = self._made("cublasLtCreate")
        self._workspace = device.allocate(WORKSPACE_BYTES)
        self._chosen: dict[tuple[tuple[str, Any], ...], tuple[_Heuristic, int, int]] = {}
        """Scalars of a problem -> algorithm, its index among the heuristics from 0 on, and their number."""
        self._last = 0, 0

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        """Return a callable that enqueues the fastest algorithm, which is searched at the first use of a shape.

        Raises `UnsupportedError` for operations other than products, if cublasLt lists no algorithm, if beta is not 0,
        and for extents beyond 32 bits.
        """
        call: Callable[[], object] = call_for("cublasLt", work.op, dict.fromkeys(("gemm", "batch"), self._product))(
            work, buffers
        )
        return call

    def _product(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        require_int32_extents(work)
        if work.scalars["beta"] != 0:
            raise UnsupportedError("cublasLt is timed with beta 0 only: its choice is made on the operands themselves")
        scalars = work.scalars
        description = self._description(scalars)
        layouts = [self._layout(scalars, name) for name in "bac"]
        enqueue = partial(self._enqueuing, scalars, buffers, description, layouts)
        key = tuple(sorted(scalars.items()))
        if key not in self._chosen:
            found = self._heuristics(description, layouts)
            if not found:
                raise UnsupportedError("cublasLt lists no algorithm")
            times = [self._time(enqueue(one)) for one in found]
            fastest = min(range(len(found)), key=times.__getitem__)
            self._chosen[key] = found[fastest], fastest, len(found)
        chosen, *last = self._chosen[key]
        self._last = last[0], last[1]
        return enqueue(chosen)

    def _time(self, call: Callable[[], object]) -> float:
        """Return the microseconds of a call, measured as `REPEATS` says; infinity if cublasLt refuses it."""
        try:
            first = self._device.time_enqueued(call, 1, 1, "cublasLt")[0]
            return (
                first
                if first >= LONG_US
                else statistics.median(self._device.time_enqueued(call, REPEATS, 1, "cublasLt"))
            )
        except PeerError:
            return float("inf")

    def _description(self, scalars: Mapping[str, Any]) -> ctypes.c_void_p:
        """Return a descriptor of the product. As in `Cublas.prepare`, cublasLt's A is the problem's B."""
        made = self._made("cublasLtMatmulDescCreate", ctypes.c_int(_COMPUTE_FLOAT32), ctypes.c_int(_FLOAT32))
        for attribute, name in ((_TRANS_A, "trans_b"), (_TRANS_B, "trans_a")):
            self._set("cublasLtMatmulDescSetAttribute", made, attribute, ctypes.c_int32(int(scalars.get(name, 0))))
        return made

    def _layout(self, scalars: Mapping[str, Any], name: str) -> ctypes.c_void_p:
        """Return cublasLt's layout of a stored operand: cublasLt is column-major, so the operand's rows are columns."""
        rows, cols = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}[name]
        if scalars.get(f"trans_{name}", 0):
            rows, cols = cols, rows
        made = self._made(
            "cublasLtMatrixLayoutCreate", ctypes.c_int(_FLOAT32), ctypes.c_uint64(scalars[cols]),
            ctypes.c_uint64(scalars[rows]), ctypes.c_int64(scalars[f"ld{name}"]),
        )  # fmt: skip
        if "batch" in scalars:
            set_attribute = partial(self._set, "cublasLtMatrixLayoutSetAttribute", made)
            set_attribute(_BATCH_COUNT, ctypes.c_int32(scalars["batch"]))
            set_attribute(_BATCH_STRIDE, ctypes.c_int64(scalars[f"stride_{name}"]))
        return made

    def _heuristics(self, description: ctypes.c_void_p, layouts: Sequence[ctypes.c_void_p]) -> list[_Heuristic]:
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _MOST_WORKSPACE, ctypes.c_uint64(WORKSPACE_BYTES))
        found, count = (_Heuristic * HEURISTICS)(), ctypes.c_int()
        left, right, result = layouts
        status = self._library.functions.cublasLtMatmulAlgoGetHeuristic(
            self._handle, description, left, right, result, result, preference, ctypes.c_int(HEURISTICS), found,
            ctypes.byref(count),
        )  # fmt: skip
        if status:
            raise UnsupportedError(f"cublasLtMatmulAlgoGetHeuristic ended with status {status}")
        return [one for one in found[: count.value] if one.state == 0]

    def _enqueuing(
        self, scalars: Mapping[str, Any], buffers: Mapping[str, Buffer], description: ctypes.c_void_p,
        layouts: Sequence[ctypes.c_void_p], heuristic: _Heuristic,
    ) -> Callable[[], None]:  # fmt: skip
        alpha, beta = (ctypes.c_float(scalars[name]) for name in ("alpha", "beta"))
        a, b, c = (ctypes.c_void_p(buffers[name].address) for name in "abc")
        left, right, result = layouts
        arguments = (
            self._handle, description, ctypes.byref(alpha), b, left, a, right, ctypes.byref(beta), c, result, c, result,
            ctypes.byref(heuristic.algorithm), ctypes.c_void_p(self._workspace.address),
            ctypes.c_size_t(WORKSPACE_BYTES), ctypes.c_void_p(int(self._device.stream)),
        )  # fmt: skip
        return self._library.repeated("cublasLtMatmul", *arguments)

    def _made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._library.check(function, ctypes.byref(made), *arguments)
        return made

    def _set(self, function: str, what: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._library.check(function, what, ctypes.c_int(attribute), ctypes.byref(value), size)

    def facts(self) -> dict[str, Any]:
        """Return library, version, arithmetic (`core_type`), file, and the rank of the fastest heuristic.

        `heuristic` is that rank, from 1 on, for the shape that was prepared most recently; `heuristics` is the number
        of usable heuristics that cublasLt listed for it.
        """
        at, count = self._last
        return {
            "library": "cublasLt", "version": version_text(self._library.functions.cublasLtGetVersion()),
            "core_type": "float32, no TF32", "file": self._library.file, "heuristic": at + 1, "heuristics": count,
        }  # fmt: skip
