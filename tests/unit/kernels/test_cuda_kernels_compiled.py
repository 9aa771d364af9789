"""The CUDA kernels shipped: what the compiler makes of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from gemmlab.core.program import Artifact
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.loops import find_loops
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from support.architectures import on_architectures
from support.cuda_source import needs_compiler

CUDA_KERNELS = [kernel for kernel in all_kernels() if kernel.device == "cuda" and kernel.op == "gemm"]
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
OP = GemmOp()
SPILLED = {
    ("double_buffer", "sm_80"): 1, ("by_tile", "sm_90"): 2, ("mma_f16x3", "sm_80"): 6, ("mma_f16x3", "sm_89"): 6,
    ("mma_f16x3", "sm_90"): 4, ("short_k", "sm_89"): 7,
}  # fmt: skip
"""The most loads and stores of spilled registers that loops of multiplications have in a layout, of several hundred
instructions. Other code for these loops needs a GPU on which its time is compared."""

each_kernel = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in CUDA_KERNELS])


def built(kernel: Kernel, arch: str, layout: str = "nn", **config: int) -> Artifact:
    problem = GemmProblem(1, 1, 1).with_layout(layout)
    return build(kernel.program(kernel.instantiate(kernel.configure(config), OP.scalars(problem)), arch))


def opcodes(artifact: Artifact) -> Counter[str]:
    """Return how many times each opcode stands in the code."""
    functions = parse(artifact.texts["sass"])
    return Counter(".".join((i.opcode, *i.modifiers)) for i in functions[artifact.entry].instructions)


SINGLE = [kernel for kernel in CUDA_KERNELS if not kernel.phased]
"""Kernels of one launch. The code of several has the registers of the one that needs most, and a part of it that runs
once may spill."""


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("kernel", "arch"), on_architectures(SINGLE))
def test_it_compiles_without_spills_in_every_layout(kernel: Kernel, arch: str) -> None:
    for layout in kernel.layouts:
        made = built(kernel, arch, layout)
        assert made.resources["static_smem_bytes"] <= 48 << 10
        found = opcodes(made)
        if (kernel.id, arch) not in SPILLED:
            assert not any(made.resources[name] for name in ("spill_stores", "spill_loads", "stack_bytes"))
            assert not [name for name in found if name.startswith(("LDL", "STL"))]
        assert sum(count for name, count in found.items() if name.startswith("STG")) > 0


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "arch"), on_architectures(kernel for kernel in CUDA_KERNELS if kernel not in SINGLE)
)
def test_several_launches_spill_nothing_in_their_loops_of_products(kernel: Kernel, arch: str) -> None:
    for layout in kernel.layouts:
        made = built(kernel, arch, layout)
        graph = flow_graph(parse(made.texts["sass"])[made.entry])
        bodies = [[i.opcode for i in graph.instructions(*sorted(loop.own))] for loop in find_loops(graph)]
        products = [body for body in bodies if {"HGMMA", "HMMA"} & set(body)]
        assert products
        spilled = sum(body.count("LDL") + body.count("STL") for body in products)
        assert spilled <= SPILLED.get((kernel.id, arch), 0), layout


@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_naive_loads_two_floats_for_each_product(arch: str) -> None:
    found = opcodes(built(find_kernel("naive"), arch))
    # One more of both is for beta * C.
    assert found["LDG.E"] - 1 == 2 * (found["FFMA"] - 1) > 2
    assert found["STG.E"] == 1
    assert not [name for name in found if name.startswith(("LDS", "STS", "BAR"))]


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_block_tile_unrolls_a_tile_and_reads_as_four_at_a_time(arch: str) -> None:
    found = opcodes(built(find_kernel("block_tile"), arch))
    # One of each tile, twice: whole tiles go through code without guards. And one of C, for beta.
    assert found["LDG.E"] == 2 * 2 + 1
    assert found["STS"] == 2
    assert found["FFMA"] == 32 + 1
    assert found["LDS.128"] == 32 / 4
    assert found["LDS"] == 32
    assert sum(count for name, count in found.items() if name.startswith("BAR.SYNC")) == 2


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("rung", ["thread_tile_2d", "vector_load", "register_stage"])
def test_fragments_come_by_sixteen_bytes_asked_for_or_not(rung: str, arch: str) -> None:
    made = built(find_kernel(rung), arch)
    found = opcodes(made)
    assert (found["LDS.128"], found["LDS"], found["LDS.64"]) == (8 * (8 + 8) / 4, 0, 0)
    assert made.resources["registers"] <= 128


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("layout", "transpose_a", "stores", "vector_stores"),
    [("nn", 1, 4, 1), ("nt", 1, 8, 0), ("tn", 1, 0, 2), ("tt", 1, 4, 1), ("nn", 0, 0, 2), ("tn", 0, 4, 1)],
)
def test_vector_load_moves_sixteen_bytes_at_a_time(
    layout: str, transpose_a: int, stores: int, vector_stores: int, arch: str
) -> None:
    found = opcodes(built(find_kernel("vector_load"), arch, layout, TRANSPOSE_A=transpose_a))
    # A float4 of A and one of B a k-block; the other sixteen are of C, for beta.
    assert found["LDG.E.128"] == 2 + 16
    assert found["STG.E.128"] >= 16
    assert (found["STS"], found["STS.128"]) == (stores, vector_stores)
    # Eight floats of each a step, whichever way A lies: the compiler unrolls along k, and joins what lies side by side.
    assert found["LDS.128"] == 8 * (8 + 8) / 4
    assert found["LDS"] == 0
    assert found["FFMA"] >= 8 * 64


@pytest.mark.in_turns(20)
@needs_compiler
@each_kernel
def test_the_loop_stands_in_the_rungs_own_file(kernel: Kernel) -> None:
    """Barriers and multiply-adds: what operands that are not aligned take, and the epilogue, may lie elsewhere."""
    made = built(kernel, "sm_90")
    instructions = parse(made.texts["sass"])[made.entry].instructions

    def files(opcode: str) -> list[str]:
        return [Path(i.line[0]).name for i in instructions if i.opcode == opcode and i.line is not None]

    # Warpgroups meet at mbarriers, whose instructions lie in functions around PTX. A rung of parts may go through the
    # loop of the rung before, whose file it includes.
    assert any(Path(file).suffix == ".cu" for file in files("BAR")) or not files("BAR") or files("SYNCS")
    if kernel.precision == "float32":
        # Whole tiles. The loop with guards may be that of the rung before, in a header.
        assert files("FFMA").count(kernel.path.name) > 0.3 * len(files("FFMA"))


@needs_compiler
def test_errors_and_lines_name_the_kernels_own_files() -> None:
    made = built(find_kernel("block_tile"), "sm_90")
    named = set(re.findall(r'//## File "([^"]+)"', made.texts["sass"]))
    assert {Path(name).name for name in named} >= {"block_tile.cu", "specialize.cuh", "tile.cuh", "epilogue.cuh"}
    assert all(Path(name).is_file() for name in named)
