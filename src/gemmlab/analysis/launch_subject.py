"""The explanation of a launch of any kernel, from one run of its machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gemmlab.analysis.explanation import Explanation, explain_subject
from gemmlab.analysis.subject import Size, Subject, machine
from gemmlab.core.counters import GLOBAL_KINDS, Counters
from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact, Launch
from gemmlab.ops.op import GBS, GFLOPS
from gemmlab.sass import metrics
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.toolchain.cubin import read_cubin

_SECTOR = 32


def explain_launch(
    artifact: Artifact, launch: Launch, counters: Counters | None, hazards: tuple[Hazard, ...], gpu: str = "",
    stray: tuple[str, ...] = (),
) -> Explanation:  # fmt: skip
    """Explain a launch for the GPU named `gpu`, by default the emulator's model GPU of the code's architecture.

    `stray` are reads of unwritten memory that reach no result, in words.

    The launch's work is the floating-point operations that its lanes executed; if there are none, the bytes that it
    moved. These are the bytes of the sectors of global memory that it accessed; a wave of blocks counts a sector once.
    Raises `UsageError` for a launch that was not counted (`counters=None`), and for a GPU that cannot run the code.
    """
    if counters is None:
        raise UsageError(f"{artifact.kernel}: a launch on a GPU is not counted; launch it with device='emulated'")
    arch, model = machine(artifact.target, gpu)
    function = parse(artifact.texts["sass"])[artifact.entry]
    flops = _flops(function, counters)
    nbytes = max(1, _SECTOR * sum(site.sectors_distinct for site in counters.of_kind(*GLOBAL_KINDS)))
    # Without floating-point operations, the work is the number of bytes.
    size = Size("this launch", flops or nbytes, nbytes, flops or nbytes)
    subject = Subject(
        kernel=None, config={}, arch=arch, model=model, artifact=replace(artifact, resources=_resources(artifact)),
        function=function, launch=launch, counters=counters, hazards=hazards, wrong=(), unit=GFLOPS if flops else GBS,
        size=size, scaled=size, stray=stray,
    )  # fmt: skip
    return explain_subject(subject)


def _flops(function: SassFunction, counters: Counters) -> int:
    """Return the floating-point operations of all lanes whose predicate was true."""
    lanes = {site.address: site.predicated_on_threads for site in counters.sites}
    return round(sum(metrics.flops(i) / metrics.WARP * lanes.get(i.address, 0) for i in function.instructions))


def _resources(artifact: Artifact) -> Mapping[str, int]:
    """Return the resources of an artifact; if it does not state registers, those in its cubin."""
    if "registers" in artifact.resources:
        return artifact.resources
    function = read_cubin(artifact.code, artifact.kernel).functions[artifact.entry]
    return {
        "registers": function.registers, "static_smem_bytes": function.static_smem_bytes,
        "stack_bytes": function.stack_bytes or 0, "code_bytes": len(function.code),
    }  # fmt: skip
