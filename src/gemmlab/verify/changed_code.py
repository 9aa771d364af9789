"""Run a kernel with changed machine code, to compare its result bit by bit with that of the compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact
from gemmlab.devices.device import Buffer, Device
from gemmlab.kernels.bound import BoundKernel, place
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Problem
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import compile_here
from gemmlab.toolchain.cubin import digest

_SEED = 5


@dataclass(frozen=True)
class Build:
    """A kernel compiled for one problem and architecture; `function` is its parsed machine code."""

    kernel: Kernel
    problem: Problem
    config: Mapping[str, int]
    instance: Mapping[str, int]
    artifact: Artifact = field(repr=False)
    function: SassFunction = field(repr=False)

    def operands(self, device: Device) -> dict[str, Buffer]:
        """Return new operands on a device: random inputs that depend on the problem alone, and NaN in the result."""
        rng = np.random.default_rng(_SEED)
        found: dict[str, Buffer] = {}
        for operand in find_op(self.kernel.op).operands(self.problem):
            span = max((operand.rows - 1) * operand.ld + operand.cols, 1)
            values = rng.standard_normal(span).astype(np.float32)
            found[operand.name] = device.upload(values if operand.role == "in" else np.full_like(values, np.nan))
        return found

    def bind(self, code: bytes, device: Device, operands: Mapping[str, Buffer] | None = None) -> BoundKernel:
        """Load the machine code `code` in place of the compiled one, and bind it to `operands`, by default new ones."""
        # Without its text: it is that of the old code.
        texts = {name: text for name, text in self.artifact.texts.items() if name != "sass"}
        placed = place(self.kernel, device, self.config)
        loaded = device.load(replace(self.artifact, code=code, digest=digest(code, self.kernel.id), texts=texts))
        placed.loaded[tuple(sorted(self.instance.items()))] = loaded
        return placed.bind(find_op(self.kernel.op), self.problem, operands or self.operands(device))

    def run(self, code: bytes, device: Device) -> npt.NDArray[np.uint32]:
        """Run the machine code `code` on new operands; return the bits of the result, of shape (words,)."""
        bound = self.bind(code, device)
        bound.run()
        return self.result(bound)

    def result(self, bound: BoundKernel) -> npt.NDArray[np.uint32]:
        """Return the bits of the result that the last run of `bound` left, of shape (words,)."""
        operands = find_op(self.kernel.op).operands(self.problem)
        out = next(operand for operand in operands if operand.role != "in")
        result = np.empty(bound.buffers[out.name].nbytes // 4, np.float32)
        bound.download(out.name, result)
        return np.array(result.view(np.uint32))


def build_of(
    kernel: Kernel, arch: str, size: str, config: Mapping[str, int], artifact: Artifact | None = None
) -> Build:  # fmt: skip
    """Compile a kernel for the first problem of `size`, or the nearest that it takes (`fitted`).

    With `artifact`, code that was compiled for this before, nothing is compiled. Raises `CompileError`, and
    `UsageError` if the kernel takes no such problem or its machine code has several functions.
    """
    op = find_op(kernel.op)
    wanted = op.parse_sizes(size)[0]
    configured = kernel.configure(config)
    problems = fitted(kernel, op, configured, [wanted])
    if not problems:
        why = "; ".join(kernel.refusals(configured, op.scalars(wanted)))
        raise UsageError(
            f"{kernel.id} does not take {wanted.label}, nor a problem like it: {why}; give one that it takes, for "
            "example --sizes 256"
        )
    problem = problems[0]
    instance = kernel.instantiate(configured, op.scalars(problem))
    if artifact is None:
        artifact, _ = compile_here(kernel.program(instance, arch))
    functions = parse(artifact.texts["sass"])
    if len(functions) != 1:
        raise UsageError(f"{kernel.id}: its machine code has {len(functions)} functions; there has to be one")
    return Build(kernel, problem, configured, instance, artifact, *functions.values())
