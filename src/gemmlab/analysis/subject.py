"""The subject of an explanation: one kernel in one configuration, its machine code and its run on the emulator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.core import gpu
from gemmlab.core.counters import Counters
from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_cures import with_cures
from gemmlab.core.notebook_view import Display
from gemmlab.core.precision import FLOAT32
from gemmlab.core.program import Artifact, Launch
from gemmlab.devices.emulated import MODELS, EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.fitting import as_taken, factor_notes, fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.gemm_problem import size_label
from gemmlab.ops.op import GFLOPS, Op
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.timing.families import family_of
from gemmlab.toolchain.ptxas_log import Remark, serialized, setmaxnreg_ignored
from gemmlab.verify.diagnosis import described
from gemmlab.verify.guarded_run import compare_results
from gemmlab.verify.guards import GuardedBuffer
from gemmlab.verify.result_cause import result_cause
from gemmlab.verify.stray_words import without_stray

_SIZES: Mapping[str, str] = {"reduce": "2^22", "sums": "256x4096x1,64x16x3"}
"""Operation -> sizes of which the first one that the kernel takes is explained, if the usual size on the emulator
leaves most threads without work or loops without iterations. Kernels for short sums take no long ones.
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one problem and its work."""

    label: str
    flops: int
    bytes_moved: int
    """Fewest bytes that a kernel has to move from and to device memory."""
    work: int
    """The number that the operation's speed counts per second: operations for GFLOP/s, bytes for GB/s."""


@dataclass(frozen=True, slots=True, repr=False)
class Subject(Display):
    """Everything that the reports of an explanation start from."""

    kernel: Kernel | None
    """The kernel as its file describes it; `None` for a launch of any other code (`explain_launch`)."""
    config: Mapping[str, int]
    arch: str
    """Architecture of the machine code."""
    model: gpu.GpuModel
    artifact: Artifact
    function: SassFunction
    launch: Launch
    """The launch with the most blocks if one execution has several; of a kernel with phases the last one."""
    counters: Counters = field(repr=False)
    """Counters of the run. `sectors_distinct` counts a sector once per block; for a launch of any code, once per wave
    of blocks.
    """
    hazards: tuple[Hazard, ...]
    wrong: tuple[str, ...]
    """Faults of the run's results, in words; empty for correct results."""
    unit: str
    """Unit of the operation's speed."""
    size: Size
    """The size that was run."""
    scaled: Size
    """The largest size of the GPU benchmark, to which figures are extrapolated; for a launch of any code, `size`."""
    stray: tuple[str, ...] = ()
    """Reads of unwritten memory that reach no result, in words."""

    def _line(self) -> str:
        return f"{self.name}: {self.arch} code on {self.model.name}, counted at {self.size.label}"

    @property
    def name(self) -> str:
        """The kernel's id, or the name of the function that was launched."""
        return self.artifact.kernel if self.kernel is None else self.kernel.id

    @property
    def precision(self) -> str:
        """The kernel's precision; for a launch of any code float32, since its operations are counted as executed."""
        return FLOAT32 if self.kernel is None else self.kernel.precision

    @property
    def traits(self) -> list[str]:
        """Notes on operands that the kernel reads though their factor is 0, as `reads C when beta is 0, so beta is 1
        where it would be 0`, and on unwritten memory that it reads (`stray`).
        """
        return [*([] if self.kernel is None else factor_notes(self.kernel, find_op(self.kernel.op))), *self.stray]

    @property
    def arithmetic(self) -> bool:
        """True for a kernel that a file describes, and for a launch that executed floating-point operations."""
        return self.kernel is not None or self.unit == GFLOPS

    @property
    def limits(self) -> gpu.GpuLimits:
        """Limits of the GPU that the kernel is explained for."""
        return self.model.limits

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return math.prod(self.launch.threads)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block asks for, static and dynamic."""
        return self.artifact.resources["static_smem_bytes"] + self.launch.smem_bytes

    @property
    def serialized(self) -> Remark | None:
        """Ptxas's reason for making the kernel wait after each warpgroup multiplication; `None` if it does not."""
        texts = self.artifact.texts
        return serialized(texts.get("log", ""), texts.get("ptx", ""), self.artifact.entry)

    @property
    def setmaxnreg_ignored(self) -> Remark | None:
        """Ptxas's reason for ignoring setmaxnreg; `None` if it did not."""
        if any(each.opcode == "USETMAXREG" for each in self.function.instructions):
            return None
        texts = self.artifact.texts
        return setmaxnreg_ignored(texts.get("log", ""), texts.get("ptx", ""), self.artifact.entry)

    @property
    def executed(self) -> dict[int, int]:
        """Number of executions by warps of each instruction, by its address."""
        return {site.address: site.executed for site in self.counters.sites}


def machine(arch: str = "", model: str = "") -> tuple[str, gpu.GpuModel]:
    """Return the architecture to compile for and the GPU to explain for.

    By default, `arch` is the newest one of the emulator's architectures whose code the GPU runs, and `model` is the
    emulator's model GPU of `arch`; without both, `arch` is sm_90. Code runs on GPUs of its own major version with the
    same or a later minor version; code for an architecture such as sm_90a only runs on its own. Raises `UsageError` for
    a pair that does not fit, for an architecture that the emulator lacks, and for a GPU that is unknown or runs none of
    the emulator's architectures.
    """
    if not model:
        named = arch or "sm_90"
        if named not in MODELS:
            raise UsageError(f"--arch {named}: the emulator runs {', '.join(MODELS)}")
        return named, gpu.model(MODELS[named])
    chosen = gpu.model(model)
    fitting = [known for known in MODELS if _runs(known, chosen.limits.arch)]
    if arch and arch not in fitting:
        runs = ", ".join(fitting) or "none"
        raise UsageError(f"no code for {arch} on {chosen.name}: of the emulator's architectures it runs {runs}")
    if not fitting:
        raise UsageError(f"--gpu {chosen.name}: the emulator runs no code for {chosen.limits.arch}")
    newest = max((known for known in fitting if known[-1].isdigit()), key=lambda known: int(known[3:]))
    return arch or newest, chosen


def observe(kernel: Kernel, arch: str, model: gpu.GpuModel, config: Mapping[str, int], sizes: str = "") -> Subject:
    """Compile the kernel for `arch`, run it once on the emulator, compare its results, and return the run as a subject.

    `sizes` names one size, such as `"256x256x256"`; by default it is one that the kernel accepts. Raises
    `CompileError`, `UsageError`, `MemoryError`, and `DeviceError` for an `arch` on which the kernel does not run.
    """
    if kernel.device != "cuda":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; only GPU kernels are explained")
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
    observation = bound.observe()
    for name, buffer in left.items():
        device.download(copies[name], buffer.words)
    found = compare_results(placed, op, problem, contents, left)
    mismatches = [one.mismatch for one in found if one.mismatch is not None]
    wrong = [mismatch.brief() for mismatch in mismatches]
    if not observation.stopped:
        wrong += dict.fromkeys(
            hint for one in mismatches
            if (hint := result_cause(placed, op, problem, contents, one, hazards=observation.hazards))
        )  # fmt: skip
    wrong += [changed.explain() for buffer in left.values() for changed in buffer.violations()]
    hazards, stray = observation.hazards, tuple[str, ...]()
    if not wrong:
        hazards, stray = without_stray(placed, op, problem, contents, observation, left)
    artifact = bound.loaded.artifact
    (largest,) = op.parse_sizes(family_of("cuda", op.name).bench_sizes.rpartition(",")[2])
    large = as_taken(kernel, op, largest)
    return Subject(
        kernel=kernel, config=chosen, arch=artifact.target, model=model, artifact=artifact,
        function=parse(artifact.texts["sass"])[artifact.entry],
        launch=_main_launch(kernel, bound.launches),
        counters=observation.counters, hazards=with_cures(described(artifact, hazards, {})), wrong=tuple(wrong),
        unit=op.unit, size=_size(op, problem), scaled=_size(op, large), stray=stray,
    )  # fmt: skip


def _main_launch(kernel: Kernel, launches: Sequence[Launch]) -> Launch:
    """Return the launch to explain: the one with the most blocks; of a kernel with phases the last one."""
    return launches[-1] if kernel.phased else max(launches, key=lambda launch: math.prod(launch.grid))


def _size(op: Op, problem: Any) -> Size:
    return Size(size_label(problem), op.flops(problem), op.bytes_moved(problem), op.work(problem))


def _problem(kernel: Kernel, op: Op, config: Mapping[str, int], sizes: str) -> Any:
    problems = op.parse_sizes(sizes or _SIZES.get(op.name) or family_of("emulated", op.name).bench_sizes)
    if sizes:
        if len(problems) != 1:
            raise UsageError(f"--sizes {sizes}: one size is explained at a time")
        return as_taken(kernel, op, problems[0])
    # A user's kernel may accept only squares or whole tiles.
    like = fitted(kernel, op, config, [as_taken(kernel, op, problem) for problem in problems])
    if not like:
        raise UsageError(f"{kernel.id}: {kernel.refusal(config, op.scalars(problems[0]))}; name a size with --sizes")
    return like[0]


def _runs(code: str, device: str) -> bool:
    if code.endswith("a"):
        return code[:-1] == device
    return code[:-1] == device[:-1] and int(code[3:]) <= int(device[3:])
