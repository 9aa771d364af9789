"""Count instructions in the machine code of the TF32 rungs, into benchmarks/results/emulated/tensor-code.json.

The record has the matrix instructions of each rung on each architecture. For `wmma_tf32_pipelined` it has the integer
instructions for a block of k, in PTX and executed by a warp on the emulator, by the number of stages, with the stage
computed by a remainder or counted.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from blocks.records import RESULTS
from blocks.tensor_code import RECORD, SCHEMA, Shapes, Stages
from gemmlab.core.architecture import runs
from gemmlab.core.counters import Counters, SiteCounters
from gemmlab.core.precision import TF32
from gemmlab.core.program import Artifact, Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.loops import main_loop
from gemmlab.sass.parse import parse

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
PIPELINED = "wmma_tf32_pipelined"
NEAR, FAR = 96, 128
"""Two extents of k. The difference of their counts is that of whole blocks of k in the midst of the loop."""
OP = GemmOp()
_PTX = re.compile(r"(?:@!?%p\d+\s+)?(add|sub|mul|mad|shl|shr|and|or|xor|not|setp|selp|cvt|rem|div|min|max)\.([\w.]+)")
_SASS = frozenset(("IMAD", "IADD", "IADD3", "VIADD", "LEA", "LOP3", "SHF", "ISETP", "IMNMX", "VIMNMX", "SEL", "PRMT"))


def main(path: Path) -> int:
    stages = [
        count_stages(arch, {"STAGES": stages, "MODULO": modulo})
        for arch in ARCHITECTURES
        for modulo in (1, 0)
        for stages in (2, 3, 4)
    ]
    shapes = [count_shapes(kernel, arch) for kernel in rungs() for arch in ARCHITECTURES]
    record = {"schema": SCHEMA, "stages": [asdict(row) for row in stages], "shapes": [asdict(row) for row in shapes]}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def rungs() -> Sequence[Kernel]:
    """Return the TF32 rungs that run on all of `ARCHITECTURES`, between which their instructions are compared."""
    every = (kernel for kernel in ladder("gemm", "cuda") if kernel.precision == TF32)
    return [kernel for kernel in every if all(runs(kernel.arch, arch) for arch in ARCHITECTURES)]


def count_stages(arch: str, config: Config) -> Stages:
    """Return the integer instructions for one block of k, for an architecture and configuration."""
    kernel, device = find_kernel(PIPELINED), open_device(f"emulated:{arch}")
    near, far = (executed(kernel, device, config, k) for k in (NEAR, FAR))
    warps = 128 // kernel.params["WM"] * (128 // kernel.params["WN"])
    blocks = (FAR - NEAR) // kernel.params["BK"] * warps
    made = built(kernel, arch, config)
    loop = ptx_loop(made.texts["ptx"])
    return Stages(
        arch=arch, stages=config["STAGES"], modulo=config["MODULO"], compiler=made.compiler, code=made.digest,
        ptx=sum(map(is_integer, loop)), reciprocals=sum("-1431655765" in line for line in loop),
        integer=(integer_work(far) - integer_work(near)) / blocks,
        all=(sum(site.executed for site in far) - sum(site.executed for site in near)) / blocks,
    )  # fmt: skip


def count_shapes(kernel: Kernel, arch: str) -> Shapes:
    """Return the numbers of matrix instructions and shared loads in the code of a rung's main loop."""
    made = built(kernel, arch, {})
    function = parse(made.texts["sass"])[made.entry]
    loop = main_loop(function)
    assert loop is not None, f"{kernel.id} has no loop"  # noqa: S101 - the rung would not be one
    # ptxas fills idle places with instructions whose guard is never true.
    whole = [i for i in flow_graph(function).instructions(*loop.blocks) if not i.text.startswith("@!PT")]
    found = Counter(i.name for i in whole)
    kept = {name: n for name, n in found.most_common() if name.partition(".")[0] in ("HMMA", "LDS", "LDSM")}
    return Shapes(kernel.id, arch, made.compiler, made.digest, kept)


def built(kernel: Kernel, arch: str, config: Config) -> Artifact:
    """Return the machine code of a kernel for row-major operands."""
    instance = kernel.instantiate(kernel.configure(config), OP.scalars(GemmProblem(1, 1, 1)))
    device = open_device(f"emulated:{arch}")
    return device.build(kernel.program(instance, arch))


def executed(kernel: Kernel, device: Device, config: Config, k: int) -> Sequence[SiteCounters]:
    """Return the counters of each instruction in a product of 128 x 128, the tile of one block, with k terms."""
    problem = GemmProblem(128, 128, k)
    contents = OP.fill(problem, np.random.default_rng(1))
    buffers = {name: device.upload(array.ravel()) for name, array in contents.items()}
    counters: Counters = place(kernel, device, config).bind(OP, problem, buffers).observe().counters
    for buffer in buffers.values():
        device.free(buffer)
    return counters.sites


def integer_work(sites: Sequence[SiteCounters]) -> int:
    """Return the number of executed integer instructions, those of the uniform datapath included; moves and the
    rounding of floats are left out.
    """
    whole = sum(
        site.executed
        for site in sites
        if site.base_opcode.removeprefix("U") in _SASS
        and ".MOV" not in site.opcode
        and not site.text.startswith("@!UPT")
    )
    # A word is rounded by a comparison and an addition of half a unit, the same in every variant.
    return whole - sum(site.executed for site in sites if site.base_opcode == "FSETP")


def ptx_loop(ptx: str) -> list[str]:
    """Return the PTX instructions of the shortest loop that has all of the kernel's matrix instructions."""
    lines = [line.strip() for line in ptx.splitlines()]
    products = [at for at, line in enumerate(lines) if "wmma.mma.sync" in line]
    labels = {line.rstrip(":"): at for at, line in enumerate(lines) if line.startswith("$L") and line.endswith(":")}
    found = [
        (labels[target[1]], at)
        for at, line in enumerate(lines)
        if (target := re.search(r"\bbra(?:\.uni)?\s+(\$\w+);", line)) and labels.get(target[1], at) < at
    ]
    around = [(first, last) for first, last in found if first < products[0] and products[-1] < last]
    first, last = min(around, key=lambda ends: ends[1] - ends[0])
    return [line for line in lines[first : last + 1] if line.endswith(";")]


def is_integer(line: str) -> bool:
    """Return whether a PTX instruction computes with integers; floating point, memory, moves and jumps do not."""
    found = _PTX.match(line)
    return found is not None and re.search(r"(?:^|\.)(?:[sub]\d+)", found[2]) is not None and "f32" not in found[2]


if __name__ == "__main__":
    sys.exit(main(RESULTS / RECORD))
