"""Rows so far apart that their offset, `row * lda`, does not fit into 32 bits.

There is one problem for each operand with a leading dimension. The operand has five rows, or more if the kernel takes
only larger problems. Of five offsets, three do not fit into an `int`, and the last one does not fit into an `unsigned`.
Nearly all of the memory is never touched, so an emulated device needs little for it. A GPU must have 17 GB, and 9 GB
more before the operand, for negative offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Observation
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact
from gemmlab.devices.device import Buffer, CountingDevice, SparseDevice, Window
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.kernels.fitting import fitted
from gemmlab.ops.op import Contents, Op, Operand
from gemmlab.verify.elementwise import Comparison, compare

_EXTENTS = (5, 8, 16, 24, 32, 64, 128, 192, 240)
"""Extents of the problems; the larger ones are for kernels that are right only at whole tiles."""
_WORDS = 1 << 32
"""Least distance of the last row from the first one in elements: one more than an `unsigned` can hold."""
_FRONT = 1 << 31
"""Elements allocated before the operand, for negative offsets of 32 bits."""
_MOST_LD = (1 << 31) - 1
_ALIGNED = 64
_BETA = 0.5


@dataclass(frozen=True, slots=True)
class FarRows:
    """A problem whose operand `name` has rows far apart."""

    name: str
    problem: Any


def far_rows(placed: PlacedKernel, op: Op, fulfils: Callable[[Any], bool] = lambda _problem: True) -> Iterator[FarRows]:
    """Yield a problem for each operand whose rows may lie far apart; none for a CPU kernel, whose offsets have 64 bits.

    Only problems for which `fulfils` is true are yielded: it says whether the kernel is known to be right at such ones.
    """
    if placed.kernel.device != "cuda":
        return
    kernel = placed.kernel
    small = next((small for extent in _EXTENTS for small in _fitted(placed, op, extent) if fulfils(small)), None)
    if small is None:
        return
    for operand in op.operands(small):
        leading = f"ld{operand.name}"
        if not hasattr(small, leading) or operand.rows < 2:
            continue
        apart = -(-_WORDS // (operand.rows - 1) // _ALIGNED) * _ALIGNED
        far = replace(small, **{leading: min(max(apart, operand.cols), _MOST_LD // _ALIGNED * _ALIGNED)})
        if fulfils(far) and not kernel.refusal(placed.config, op.scalars(far)):
            yield FarRows(operand.name, far)


def _fitted(placed: PlacedKernel, op: Op, extent: int) -> Iterator[Any]:
    """Yield the problems of that extent that the kernel takes, first one with beta not 0; none if it takes none."""
    try:
        (problem,) = op.parse_sizes(str(extent))
    except UsageError:
        return  # An operation that one number does not give a size.
    problems = [replace(problem, beta=_BETA), problem] if hasattr(problem, "beta") else [problem]
    yield from fitted(placed.kernel, op, placed.config, problems)


@dataclass(frozen=True, slots=True)
class FarRun:
    """The outcome of a run at a problem of `far_rows`."""

    comparisons: list[Comparison]
    observation: Observation | None
    places: Mapping[str, tuple[int, Operand]]
    """Address and shape of each operand."""
    artifact: Artifact
    """The code that ran."""


def run_far(placed: PlacedKernel, op: Op, far: FarRows, contents: Contents, *, threads: int) -> FarRun:
    """Run the kernel at a problem of `far_rows`, with `contents` as the rows of the operands, and compare its outputs.

    Raises `MemoryError` if a GPU has too little memory.
    """
    device = placed.device
    assert isinstance(device, SparseDevice)  # noqa: S101 - the caller asks devices that are
    operands = {operand.name: operand for operand in op.operands(far.problem)}
    buffers: dict[str, Buffer] = {}
    whole: list[Buffer] = []
    try:
        for name, operand in operands.items():
            size = operand.element.nbytes
            span = size * ((operand.rows - 1) * operand.ld + operand.cols)
            front = 0 if isinstance(device, CountingDevice) or name != far.name else size * _FRONT
            whole.append(device.allocate_sparse(front + span))
            buffers[name] = Window(whole[-1], front, span)
            for row, values in enumerate(contents[name]):
                device.write(_row(buffers[name], operand, row), np.ascontiguousarray(values))
        bound = placed.bind(op, far.problem, buffers, threads=threads)
        observation = None
        if isinstance(device, CountingDevice):
            observation = bound.observe()
        else:
            bound.run()
        found = {name: _rows(device, buffers[name], operands[name]) for name in _outputs(operands)}
    finally:
        for buffer in whole:
            device.free(buffer)
    scalars = op.scalars(far.problem)
    roundings = placed.kernel.roundings(placed.kernel.instantiate(placed.config, scalars), scalars)
    expected = op.reference(far.problem, contents, roundings, placed.kernel.precision)
    terms = op.dot_length(far.problem)
    compared = [compare(name, found[name], values, terms, operands[name].element) for name, values in expected.items()]
    places = {name: (buffers[name].address, shape) for name, shape in operands.items()}
    return FarRun(compared, observation, places, bound.loaded.artifact)


def _outputs(operands: Mapping[str, Operand]) -> list[str]:
    return [name for name, operand in operands.items() if operand.role != "in"]


def _row(buffer: Buffer, operand: Operand, row: int) -> Window:
    size = operand.element.nbytes
    return Window(buffer, size * row * operand.ld, size * operand.cols)


def _rows(device: SparseDevice, buffer: Buffer, operand: Operand) -> npt.NDArray[Any]:
    found = np.empty((operand.rows, operand.cols), operand.element.storage)
    for row in range(operand.rows):
        device.read(_row(buffer, operand, row), found[row])
    return found
