"""A kernel run with changed machine code on a small problem, against the same kernel unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import compile_here
from gemmlab.toolchain.nvdisasm import disassemble


@dataclass(frozen=True)
class Subject:
    """A kernel's build for a problem."""

    kernel: str
    arch: str
    size: str
    config: Mapping[str, int]
    instance: Mapping[str, int]
    artifact: Artifact
    function: SassFunction

    def run(self, code: bytes, device: EmulatedDevice) -> npt.NDArray[np.uint32]:
        """The result's bits with this machine code."""
        kernel = find_kernel(self.kernel)
        op = find_op(kernel.op)
        (problem,) = op.parse_sizes(self.size)
        rng = np.random.default_rng(5)
        arrays: dict[str, Any] = {}
        for operand in op.operands(problem):
            span = (operand.rows - 1) * operand.ld + operand.cols
            arrays[operand.name] = rng.standard_normal(max(span, 1)).astype(np.float32)
        texts = {"sass": disassemble(code, self.kernel), "log": self.artifact.texts.get("log", "")}
        placed = place(kernel, device, self.config)
        loaded = device.load(replace(self.artifact, code=code, texts=texts))
        placed.loaded[tuple(sorted(self.instance.items()))] = loaded
        buffers = {name: device.upload(array) for name, array in arrays.items()}
        bound = placed.bind(op, problem, buffers)
        for launch in bound.launches:
            device.observe(loaded, launch)
        out = next(operand.name for operand in op.operands(problem) if operand.role != "in")
        bound.download(out, arrays[out])
        return np.array(arrays[out].view(np.uint32))


@cache
def subject(kernel: str, arch: str, size: str, **config: int) -> Subject:
    found = find_kernel(kernel)
    op = find_op(found.op)
    (problem,) = op.parse_sizes(size)
    configured = found.configure(config)
    instance = found.instantiate(configured, op.scalars(problem))
    artifact, _ = compile_here(found.program(instance, arch))
    function = parse(artifact.texts["sass"])[parse_name(artifact)]
    return Subject(kernel, arch, size, configured, instance, artifact, function)


def parse_name(artifact: Artifact) -> str:
    """The mangled name of the only kernel."""
    (name,) = parse(artifact.texts["sass"])
    return name
