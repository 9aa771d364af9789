"""Estimate the time of a kernel on a product that was not measured, by a rule with a few parameters.

The blocks of a grid are distributed over a GPU's multiprocessors in turn. The multiprocessor with the most blocks,
`ceil(blocks / SMs)`, determines the time. At most `r` blocks are resident on it at a time (occupancy). If `j <= r`
blocks run together, each step along k takes

    max(alone, j * share)

`alone` is the time of a single block: its latency. `share` is the time that each block adds on a full multiprocessor:
issue slots, shared memory. So `rounds` rounds of `r` blocks and a last round of `rest` blocks take

    steps * (rounds * max(alone, r * share) + max(alone, rest * share))

for blocks of `steps` steps along k. These are all of k, or a part of it if several blocks share the k of a tile of C. A
block's other work takes as long as `ends` more steps. A product takes at least the time of reading and writing its
matrices.

Some kernels split k over blocks, which add their parts of a sum in a tree: each of its `levels` takes a constant time
`meet`, and the parts pass through the level-2 cache. Other kernels have several launches for a product: what one leaves
for the next (`left` bytes) is written to memory and read again. So a product takes, with rates `memory` and `cache`,

    start + max((steps + ends) * ..., bytes / memory) + levels * meet + 2 * bytes of parts / cache + 2 * left / memory

Where rows of an operand that is read four floats at a time do not begin on 16 bytes, both operands are read by single
words, and `alone` and `share` are `1 + words` times as large. There is no separate rule for skinny shapes and tiles at
the edge: a tile that hangs over the edge costs as much as a full one. There is none for layouts either: separate
figures for them, fitted to fewer products, led to worse choices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gemmlab.core import gpu
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.choice_store import machine_of_gpu
from gemmlab.dispatch.measurements import Figures, Measurement, Table
from gemmlab.dispatch.slices import passed_bytes
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem

PARTS = "SPLITS"
"""The parameter of kernels whose blocks share k: the number of parts."""
FAN = 8
"""Number of blocks whose parts a node of the tree adds (`cuda_common/parts.cuh`)."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The properties of a GPU that a choice depends on."""

    name: str
    limits: gpu.GpuLimits
    sms: int
    """Number of multiprocessors."""
    mhz: float
    """Clock of the multiprocessors in MHz."""
    memory_gbs: float
    l2_gbs: float
    """`memory_gbs` and `l2_gbs` are the rates of memory and level-2 cache, in 10^9 bytes a second."""
    known: str = ""
    """The model's name in `core.gpu.model`; empty for a model that is not known there."""
    machine: str = ""
    """The name under which `choice_store` has measurements of a GPU of this machine; empty for other GPUs."""


class Estimate(NamedTuple):
    """The estimated time of one kernel on one problem, and the figures that determine it."""

    us: float
    blocks: int
    resident: int
    """Number of blocks that a multiprocessor runs at a time; 0 if not even one fits, and the time is infinite."""
    rounds: int
    """Number of rounds, of at most `resident` blocks each, on the multiprocessor with the most blocks."""
    steps: int = 0
    """Number of steps along k of a block."""
    passed_us: float = 0.0
    """The part of `us` in which blocks pass each other parts of sums, or launches pass data to later ones."""


@cache
def gpu_model(name: str) -> Gpu:
    """Return a GPU model by its name, as `core.gpu.model` knows it. Raises `UsageError` for an unknown name."""
    found = gpu.model(name)
    return Gpu(
        found.name, found.limits, found.sms, found.boost_mhz, found.memory_gbs, found.l2_gbs, found.name
    )  # fmt: skip


def gpu_of_facts(name: str, facts: Mapping[str, Any]) -> Gpu:
    """Return a GPU as its driver describes it (`devices/cuda_facts.py`).

    An unknown architecture gets the limits of the nearest older one. Raises `UsageError` if there is none.
    """
    capability, sms, mhz = facts["compute_capability"], int(facts["sms"]), max(1.0, facts["clock_khz"] / 1e3)
    wanted = int(capability.replace(".", ""))
    limits = next(filter(None, map(_limits, (a for a in reversed(gpu.ARCHITECTURES) if _number(a) <= wanted))), None)
    if limits is None:
        raise UsageError(f"gemm: nothing is known about {name}, compute capability {capability}")
    # Two words per clock: memory of GPUs transfers on both edges.
    memory_gbs = 2 * facts["memory_clock_khz"] * facts["memory_bus_bits"] / 8 / 1e6
    try:
        called = gpu.model(name).name
    except UsageError:
        called = ""
    l2_gbs = min(gpu.L2_BYTES_PER_CLOCK, 64 * sms) * mhz / 1e3
    machine = machine_of_gpu(name, str(facts["driver_cuda"])) if "driver_cuda" in facts else ""
    return Gpu(name, limits, sms, mhz, max(1.0, memory_gbs), l2_gbs, called, machine)


def estimate(
    entry: Measurement, problem: GemmProblem, where: Gpu, table: Table, *, parts: int = 1, products: int = 1
) -> Estimate:  # fmt: skip
    """Return the estimated time of the kernel `entry` of `table` on the GPU `where`, in microseconds.

    One launch computes `products` products of the shape `problem`; the k of each is split into `parts`. If `where` is
    not the table's GPU, block times scale with clock and FMA lanes, memory times with bandwidth. The time is infinite
    if no block fits on the GPU, and 0 if there are no blocks.
    """
    return Rule(entry, problem, where, table).estimate(parts, products)


class Rule:
    """The rule for one kernel, one product and one GPU, as `estimate` takes them: facts of all launches, and estimates
    for numbers of parts and products.
    """

    def __init__(self, entry: Measurement, problem: GemmProblem, where: Gpu, table: Table) -> None:
        measured_on, m, n, k = gpu_model(table.gpu), problem.m, problem.n, problem.k
        memory_gbs = table.memory_gbs * where.memory_gbs / measured_on.memory_gbs
        self._bytes_in_us, self._parts_bytes_in_us = (
            memory_gbs * 1e3, table.parts_gbs * where.l2_gbs / measured_on.l2_gbs * 1e3
        )  # fmt: skip
        self._grid, (self._steps,) = _parsed(entry.grid), _parsed((entry.steps,))
        self._names, self._sms = _names(entry, problem, 1), where.sms
        self._resident = resident_blocks(where.limits, entry.registers, entry.smem, entry.threads)
        self._result, self._moved = m * n, FLOAT_BYTES * (m * k + k * n + m * n)
        self._passed = 2 * passed_bytes(find_kernel(entry.kernel), entry.config, problem) / self._bytes_in_us
        figures = scaled_figures(entry, where, table)
        if reads_by_words(problem):
            longer = 1 + figures.words
            figures = figures._replace(alone_us=figures.alone_us * longer, share_us=figures.share_us * longer)
        self._figures = figures

    def estimate(self, parts: int, products: int = 1) -> Estimate:
        """Return the estimate for k in `parts` parts."""
        names, resident = self._names, self._resident
        names[PARTS], names["batch"] = parts, products
        blocks = math.prod([dimension.whole(names) for dimension in self._grid])
        if not resident or not blocks:
            return Estimate(float("inf") if blocks else 0.0, blocks, resident, 0)
        start, alone, share, meet, ends, _words = self._figures
        rounds, rest = divmod(-(-blocks // self._sms), resident)
        step = rounds * max(alone, resident * share) + (max(alone, rest * share) if rest else 0.0)
        names["blocks"] = blocks
        steps = self._steps.whole(names)
        memory = products * self._moved / self._bytes_in_us
        meeting, passed = 0.0, self._passed
        if parts > 1:
            meeting = math.ceil(math.log(parts, FAN) - 1e-9) * meet
            passed = 2 * FLOAT_BYTES * self._result * parts / self._parts_bytes_in_us
        us = start + max((steps + ends) * step, memory) + meeting + passed
        return Estimate(us, blocks, resident, rounds + bool(rest), steps, passed)


def scaled_figures(entry: Measurement, where: Gpu, table: Table) -> Figures:
    """Return the figures of a kernel of `table` for another GPU.

    The times of steps and of the tree scale with the clock, `share_us` also with FMA lanes; the others stay.
    """
    measured_on, found = gpu_model(table.gpu), entry.figures
    clock = measured_on.mhz / where.mhz
    lanes = measured_on.limits.fma_lanes / where.limits.fma_lanes
    return found._replace(
        alone_us=found.alone_us * clock, share_us=found.share_us * clock * lanes, meet_us=found.meet_us * clock
    )


def reads_by_words(problem: GemmProblem) -> bool:
    """Return whether an operand that kernels read four floats at a time has rows that do not begin on 16 bytes."""
    return bool(problem.trans_a and problem.lda % 4) or bool(not problem.trans_b and problem.ldb % 4)


def odd_rows(problem: GemmProblem) -> bool:
    """Return whether an operand that kernels read, or the result that they write, four floats at a time has rows that
    do not begin on 16 bytes.
    """
    return reads_by_words(problem) or bool(problem.ldc % 4)


def in_domain(entry: Measurement, problem: GemmProblem) -> bool:
    """Return whether `problem` is in the entry's domain. For other products the entry's figures are meaningless."""
    return not entry.domain or bool(_parsed((entry.domain,))[0](_names(entry, problem, 1)))


def unmet(entry: Measurement, problem: GemmProblem) -> str:
    """Return the first of `entry.require` that a product does not meet; empty if it meets all."""
    if not entry.require:
        return ""
    names = _names(entry, problem, 1)
    return next((each.text for each in _parsed(entry.require) if not each(names)), "")


def block_steps(entry: Measurement, problem: GemmProblem, parts: int, blocks: int) -> int:
    """Return the number of steps along k of one of `blocks` blocks."""
    (steps,) = _parsed((entry.steps,))
    return steps.whole({**_names(entry, problem, parts), "blocks": blocks})


def _names(entry: Measurement, problem: GemmProblem, parts: int) -> dict[str, int]:
    # If there are several launches, the last one counts: for any number n of them, -1 % n is n - 1.
    return {
        **entry.config, "M": problem.m, "N": problem.n, "K": problem.k, PARTS: parts, "phase": -1,
        **layout_names(problem),
    }  # fmt: skip


def layout_names(problem: GemmProblem) -> dict[str, int]:
    """Return name -> value of layout and leading dimensions, as conditions on products name them."""
    return {"TRANS_A": problem.trans_a, "TRANS_B": problem.trans_b,
            "lda": problem.lda, "ldb": problem.ldb, "ldc": problem.ldc}  # fmt: skip


@cache
def _parsed(texts: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(map(parse, texts))


@cache
def resident_blocks(limits: gpu.GpuLimits, registers: int, smem: int, threads: int) -> int:
    """Return the number of blocks that a multiprocessor runs at a time."""
    return gpu.occupancy(limits, registers, smem, threads).blocks


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _limits(arch: str) -> gpu.GpuLimits | None:
    try:
        return gpu.limits(arch)
    except UsageError:
        return None
