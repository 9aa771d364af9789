"""A driver whose kernels multiply, for tests without a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Program
from gemmlab.core.tensor_map import decode
from support.fake_driver import Names
from support.fake_scratch import ScratchDriver

GEMM_PARAMS = (4, 4, 4, 4, 8, 4, 8, 4, 4, 8, 4)
"""Bytes of M, N, K, alpha, A, lda, B, ldb, beta, C, ldc."""
SCRATCH_PARAMS = (*GEMM_PARAMS, 8, 8)
"""Those, and the addresses of workspace and tickets."""
WORKSPACE_PARAMS = (*GEMM_PARAMS, 8, 4)
"""Those, the address of a workspace, and the number of the launch."""
PHASED_PARAMS = (*SCRATCH_PARAMS, 4)
"""Those of `SCRATCH_PARAMS`, and the number of the launch."""
_VERDICT = 25
"""The first ticket between the launches of a product."""
BATCH_PARAMS = (*GEMM_PARAMS, 128)
"""Those of one product, and bytes of the leading axes."""
GROUP_PARAMS = (4, 8, 8, 4, 8, 4, 4, 56 * 64)
"""Bytes of alpha, A, B, beta, C, the number of products, the tiles of a unit, and the table of products."""
MAPPED_PARAMS = (4, 4, 4, 4, 4, 8, 4, 128, 128)
"""Bytes of M, N, K, alpha, beta, C, ldc and tensor maps over A and B."""
MAPPED_SCRATCH_PARAMS = (*MAPPED_PARAMS, 8, 8)
"""Those, and the addresses of workspace and tickets."""
_INT, _FLOAT, _ADDRESS = ctypes.c_int32, ctypes.c_float, ctypes.c_uint64
_ARGUMENTS: tuple[Any, ...] = (
    _INT, _INT, _INT, _FLOAT, _ADDRESS, _INT, _ADDRESS, _INT, _FLOAT, _ADDRESS, _INT,
)  # fmt: skip
_MAPPED_ARGUMENTS: tuple[Any, ...] = (_INT, _INT, _INT, _FLOAT, _FLOAT, _ADDRESS, _INT)
_GROUP_ARGUMENTS: tuple[Any, ...] = (_FLOAT, _ADDRESS, _ADDRESS, _FLOAT, _ADDRESS, _INT, _INT)


def rows(address: int, count: int, length: int, ld: int) -> npt.NDArray[np.float32]:
    """A matrix in memory; only its own elements can be reached."""
    if not count * length:
        return np.empty((count, length), np.float32)
    flat = np.ctypeslib.as_array((ctypes.c_float * ((count - 1) * ld + length)).from_address(address))
    return np.lib.stride_tricks.as_strided(flat, (count, length), (4 * ld, 4))


_SCRATCH = {
    "split_k": (0, 1), "stream_k": (0, 1), "narrow_strip": (1, 0), "row_product": (1, 0), "dot_product": (1, 0),
    "by_tile": (0, 1), "bf16x6": (0, 1), "peak_simt": (0, 1),
}  # fmt: skip
"""Kernels with scratch memory: where workspace and tickets stand after the arguments of a product."""


def transposed(name: str) -> tuple[bool, bool]:
    """TRANS_A and TRANS_B of an instance, which SHORT_SUMS may follow; kernels without them read nn."""
    flags = [each == "true" for each in name.partition("<")[2].rstrip(">").split(", ") if each in ("true", "false")]
    return (flags[0], flags[1]) if len(flags) > 1 else (False, False)


def multiply(
    name: str, m: int, n: int, k: int, alpha: float, a: int, lda: int, b: int, ldb: int, beta: float, c: int, ldc: int
) -> None:
    """As the kernels' contract has it."""
    trans_a, trans_b = transposed(name)
    left = rows(a, k, m, lda).T if trans_a else rows(a, m, k, lda)
    right = rows(b, n, k, ldb).T if trans_b else rows(b, k, n, ldb)
    result = rows(c, m, n, ldc)
    product = np.float32(alpha) * (left @ right) if alpha and k else np.zeros((m, n), np.float32)
    result[...] = product + (np.float32(beta) * result if beta else 0)


def multiply_batch(one: Callable[..., None], name: str, *arguments: Any) -> None:
    """`one` for every product of a batch, whose leading axes come last: the innermost first."""
    *first, axes = arguments
    steps = np.frombuffer(axes, np.int64).reshape(4, 4)
    for index in np.ndindex(*(int(extent) for *_, extent in steps)):
        a, b, c = (4 * int(np.dot(index, steps[:, which])) for which in range(3))
        each = list(first)
        each[4], each[6], each[9] = each[4] + a, each[6] + b, each[9] + c
        one(name, *each)


def multiply_group(
    one: Callable[..., None], name: str, alpha: float, a: int, b: int, beta: float, c: int, count: int, unit: int,
    table: bytes,
) -> None:  # fmt: skip
    """`one` for every product of a group; first tiles must rise."""
    firsts = list[int]()
    for index in range(count):
        entry = table[56 * index : 56 * (index + 1)]
        to_a, to_b, to_c = (4 * int(step) for step in np.frombuffer(entry[:24], np.int64))
        m, n, k, lda, ldb, ldc, first, _ = (int(word) for word in np.frombuffer(entry[24:], np.int32))
        firsts.append(first * unit)
        one(name, m, n, k, alpha, a + to_a, lda, b + to_b, ldb, beta, c + to_c, ldc)
    assert firsts[0] == 0
    assert firsts == sorted(set(firsts))


@dataclass
class GemmDriver(ScratchDriver):
    """A driver whose every kernel multiplies; `multiply` gets its name and its arguments."""

    params: tuple[int, ...] = GEMM_PARAMS
    threads: int = 1024
    multiply: Callable[..., None] = multiply
    multiply_batch: Callable[..., None] = multiply_batch
    """Gets `multiply` first, and the leading axes as bytes."""
    multiply_group: Callable[..., None] = multiply_group
    """Gets `multiply` first, and the table of products as bytes."""
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """Records and waits: (what, which stream)."""
    placed: dict[int, int] = field(default_factory=dict)
    """Addresses that lie on another GPU than cuda:1."""
    workspaces: list[int] = field(default_factory=list)
    """The workspace of each launch of a kernel that has one and no tickets."""
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUlaunchConfig = SimpleNamespace
    CUlaunchAttributeID = Names()

    @staticmethod
    def CUlaunchAttribute() -> SimpleNamespace:  # noqa: N802 - the driver's name
        return SimpleNamespace(value=SimpleNamespace())

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        if name in {"cuEventRecord", "cuStreamWaitEvent"}:
            self.events.append((name, arguments[0 if name == "cuStreamWaitEvent" else 1]))
        if name == "cuLaunchKernelEx":
            return (self.launch_kernel_ex(*arguments),)
        if name == "cuMemcpyDtoDAsync":
            ctypes.memmove(*arguments[:3])
            self.events.append((name, arguments[3]))
            return (0,)
        return super()._call(name, *arguments)

    def device_get_attribute(self, name: str, _device: int) -> tuple[int, int]:
        known = {"CAPABILITY_MAJOR": 9, "CAPABILITY_MINOR": 0, "PER_BLOCK_OPTIN": 232_448, "MULTIPROCESSOR": 132}
        return 0, next((value for part, value in known.items() if part in name), 1_980_000)

    def launch_kernel_ex(self, config: Any, function: str, pointers: int, extra: int) -> int:
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        return self.launch_kernel(function, *grid, *block, config.sharedMemBytes, config.hStream, pointers, extra)

    def launch_kernel(self, function: str, *arguments: Any) -> int:
        self.launches.append((function, *arguments[:8]))
        sizes = self._sizes(function)
        if sizes in (MAPPED_PARAMS, MAPPED_SCRATCH_PARAMS):
            self.multiply(function, *_unmapped(arguments[8]))
            if sizes is MAPPED_SCRATCH_PARAMS:
                last = (ctypes.c_void_p * len(sizes)).from_address(arguments[8])[-2:]
                self.note_scratch(*(_ADDRESS.from_address(place or 0).value for place in last))
            return 0
        places = (ctypes.c_void_p * len(sizes)).from_address(arguments[8])
        scratch = [_ADDRESS.from_address(places[len(_ARGUMENTS) + at] or 0).value for at in _scratch_at(function)]
        if sizes is PHASED_PARAMS:
            launches = 3 if function.startswith("by_tile") else 2
            self._note_phase(_INT.from_address(places[len(sizes) - 1] or 0).value % launches, launches - 1, *scratch)
        elif scratch:
            self.note_scratch(*scratch)
        if sizes is WORKSPACE_PARAMS:
            self.workspaces.append(_ADDRESS.from_address(places[len(_ARGUMENTS)] or 0).value)
        if scratch or sizes is WORKSPACE_PARAMS:
            sizes = sizes[: len(_ARGUMENTS)]
        kinds = _GROUP_ARGUMENTS if sizes is GROUP_PARAMS else _ARGUMENTS
        values: list[Any] = [kind.from_address(place or 0).value for kind, place in zip(kinds, places, strict=False)]
        if len(sizes) > len(kinds):
            values.append(ctypes.string_at(places[-1] or 0, sizes[-1]))
        if sizes is BATCH_PARAMS:
            self.multiply_batch(self.multiply, function, *values)
        elif sizes is GROUP_PARAMS:
            self.multiply_group(self.multiply, function, *values)
        else:
            self.multiply(function, *values)
        return 0

    def _note_phase(self, phase: int, last: int, workspace: int, tickets: int) -> None:
        """The first launch of a slice of k finds tickets at zero and leaves others, which the `last` one clears."""
        ticket = ctypes.c_uint32.from_address(tickets)
        if phase == 0:
            self.note_scratch(workspace, tickets)
            ticket.value = _VERDICT
        assert ticket.value == _VERDICT
        if phase == last:
            ticket.value = 0

    def func_get_param_info(self, function: str, index: int) -> tuple[int, ...]:
        params = self._sizes(function)
        return (0, 8 * index, params[index]) if index < len(params) else (1, 0, 0)

    def _sizes(self, function: str) -> tuple[int, ...]:
        """Bytes of a kernel's arguments."""
        if "batched" in function:
            return BATCH_PARAMS
        if "grouped" in function:
            return GROUP_PARAMS
        if "persistent" in function:
            return MAPPED_PARAMS
        if function.startswith("tf32_split_k"):
            return MAPPED_SCRATCH_PARAMS
        if "mma_f16x3" in function:
            return WORKSPACE_PARAMS
        if function.startswith(("by_tile", "f16x3", "bf16x6", "bf16x9")):
            return PHASED_PARAMS
        return SCRATCH_PARAMS if _scratch_at(function) else self.params

    def ordinal_of(self, pointer: int) -> int:
        return self.placed.get(pointer, 1)


def _unmapped(places: int) -> tuple[Any, ...]:
    """Return the arguments of a product from those of a kernel that has tensor maps over A and B."""
    at = (ctypes.c_void_p * len(MAPPED_PARAMS)).from_address(places)
    values = [kind.from_address(place or 0).value for kind, place in zip(_MAPPED_ARGUMENTS, at, strict=False)]
    m, n, k, alpha, beta, c, ldc = values
    a, b = (decode(ctypes.string_at(at[index] or 0, 128)) for index in (7, 8))
    assert {each.type.name for each in (a, b)} == {"TFLOAT32"}
    return m, n, k, alpha, a.address, a.strides[0] // 4, b.address, b.strides[0] // 4, beta, c, ldc


def _scratch_at(function: str) -> tuple[int, ...]:
    return next((at for kernel, at in _SCRATCH.items() if kernel in function), ())


def uncompiled(program: Program) -> Artifact:
    """In place of the compiler: code that is nothing but its name."""
    return Artifact(
        program.kernel, "cubin", program.target, program.entry, program.entry.encode(), program.entry, "none"
    )
