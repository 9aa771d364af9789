"""What is explained: one kernel in one configuration, its machine code, and what it did on the emulator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.core import gpu
from gemmlab.core.counters import Counters, Hazard
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact, Launch
from gemmlab.devices.emulated import ARCHITECTURES, MODELS, EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Op
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.timing.families import family_of
from gemmlab.verify.guarded_run import compare_results
from gemmlab.verify.guards import GuardedBuffer
from gemmlab.verify.nan_hint import unread_hint

_SIZES: Mapping[str, str] = {"reduce": "2^22"}
"""Where an operation's usual size on the emulator would leave most threads without work, and loops unused."""


@dataclass(frozen=True, slots=True)
class Size:
    """One problem, as far as it matters here."""

    label: str
    flops: int
    bytes_moved: int
    """By any kernel."""
    work: int
    """In the operation's own unit."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Everything that the explanations are made of."""

    kernel: Kernel
    config: Mapping[str, int]
    arch: str
    """Of the code."""
    model: gpu.GpuModel
    artifact: Artifact
    function: SassFunction
    launch: Launch
    """The one with the most blocks, of those that make one execution."""
    counters: Counters = field(repr=False)
    """Sectors are distinct within a block."""
    hazards: tuple[Hazard, ...]
    wrong: tuple[str, ...]
    """What is wrong with the results of the run; empty for a kernel that computes what it should."""
    unit: str
    """What the operation's speed is told in."""
    size: Size
    """That was run."""
    scaled: Size
    """A larger one that is told about without being run."""

    @property
    def limits(self) -> gpu.GpuLimits:
        """Of the GPU it is explained for."""
        return self.model.limits

    @property
    def threads(self) -> int:
        """In a block."""
        return math.prod(self.launch.threads)

    @property
    def smem_bytes(self) -> int:
        """A block asks for, static and dynamic."""
        return self.artifact.resources["static_smem_bytes"] + self.launch.smem_bytes

    @property
    def executed(self) -> dict[int, int]:
        """Address -> how often a warp ran the instruction there."""
        return {site.address: site.executed for site in self.counters.sites}


def machine(arch: str = "", model: str = "") -> tuple[str, gpu.GpuModel]:
    """The architecture to compile for and the GPU to explain for, either of which follows from the other.

    Code runs on GPUs of its own major version that are not older. `UsageError` for a pair that does not fit.
    """
    if not model:
        named = arch or "sm_90"
        if named not in MODELS:
            raise UsageError(f"--arch {named}: counted are {', '.join(ARCHITECTURES)}")
        return named, gpu.model(MODELS[named])
    chosen = gpu.model(model)
    fitting = [known for known in ARCHITECTURES if _runs(known, chosen.limits.arch)]
    if arch and arch not in fitting:
        raise UsageError(f"--arch {arch}: of what is counted a {chosen.name} runs {', '.join(fitting) or 'none'}")
    if not fitting:
        raise UsageError(f"--gpu {chosen.name}: the emulator runs no code for {chosen.limits.arch}")
    return arch or max(fitting), chosen


def observe(kernel: Kernel, arch: str, model: gpu.GpuModel, config: Mapping[str, int], sizes: str = "") -> Subject:
    """Compile, run once on the emulator at a size that the kernel takes, and keep what was seen.

    Raises `CompileError`, `UsageError`, `MemoryError`.
    """
    if kernel.device != "cuda":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; explained are those for a GPU")
    op, chosen = find_op(kernel.op), kernel.configure(config)
    problem = _problem(kernel, op, chosen, sizes)
    require_memory(check_bytes(op, problem), f"size {problem.label}")
    device = EmulatedDevice(arch, wave_blocks=1)
    contents = op.fill(problem, np.random.default_rng(0))
    left = {one.name: GuardedBuffer(one, contents[one.name], guards=False) for one in op.operands(problem)}
    placed = place(kernel, device, chosen)
    copies = {name: device.upload(buffer.words) for name, buffer in left.items()}
    bound = placed.bind(op, problem, copies)
    if not bound.launches:
        raise UsageError(f"{kernel.id} launches nothing for {problem.label}")
    seen = bound.observe()
    for name, buffer in left.items():
        device.download(copies[name], buffer.words)
    found = compare_results(placed, op, problem, contents, left)
    mismatches = [one.mismatch for one in found if one.mismatch is not None]
    wrong = [mismatch.brief() for mismatch in mismatches]
    if not seen.stopped:
        wrong += dict.fromkeys(hint for mismatch in mismatches if (hint := unread_hint(mismatch, contents)))
    wrong += [changed.explain() for buffer in left.values() for changed in buffer.violations()]
    artifact = bound.loaded.artifact
    (large,) = op.parse_sizes(family_of("cuda", op.name).bench_sizes.rpartition(",")[2])
    return Subject(
        kernel=kernel, config=chosen, arch=arch, model=model, artifact=artifact,
        function=parse(artifact.texts["sass"])[artifact.entry],
        launch=max(bound.launches, key=lambda launch: math.prod(launch.grid)),
        counters=seen.counters, hazards=seen.hazards, wrong=tuple(wrong), unit=op.unit,
        size=_size(op, problem), scaled=_size(op, large),
    )  # fmt: skip


def _size(op: Op, problem: Any) -> Size:
    return Size(problem.label, op.flops(problem), op.bytes_moved(problem), op.work(problem))


def _problem(kernel: Kernel, op: Op, config: Mapping[str, int], sizes: str) -> Any:
    problems = op.parse_sizes(sizes or _SIZES.get(op.name) or family_of("emulated", op.name).bench_sizes)
    if len(problems) != 1:
        raise UsageError(f"--sizes {sizes}: one size is explained at a time")
    if sizes:
        return problems[0]
    # An own kernel may take squares or whole tiles only.
    like = fitted(kernel, op, config, problems)
    if not like:
        raise UsageError(f"{kernel.id}: {kernel.refusal(config, op.scalars(problems[0]))}; name a size with --sizes")
    return like[0]


def _runs(code: str, device: str) -> bool:
    return code[:-1] == device[:-1] and int(code[3:]) <= int(device[3:])
