"""The Maxwell design: which way its loads go, in its machine code and when it runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = GemmOp()
PIECES = {"maxas_64": 4, "maxas_256": 2}
"""Float4 that a thread brings of a k-block."""
each_rung = pytest.mark.parametrize("rung", PIECES)


def opcodes(rung: str, arch: str, **config: int) -> Counter[str]:
    kernel = find_kernel(rung)
    instance = kernel.instantiate(kernel.configure(config), OP.scalars(GemmProblem(1, 1, 1).with_layout("tn")))
    made = build(kernel.program(instance, arch))
    return Counter(".".join((i.opcode, *i.modifiers)) for i in parse(made.texts["sass"])[made.entry].instructions)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@each_rung
def test_a_half_loads_with_one_set_of_instructions(rung: str, arch: str) -> None:
    found = opcodes(rung, arch)
    fetches = sum(count for name, count in found.items() if name.startswith("TLD"))
    # Of the first k-block, whole or ragged, and of the next one. No loop over lanes that hold different textures.
    assert fetches == found["LDG.E.128"] == 3 * PIECES[rung]
    assert found["BRA.U.ANY"] == 0
    without = opcodes(rung, arch, TEXTURE=0)
    assert without["LDG.E.128"] == 3 * PIECES[rung]
    assert not [name for name in without if name.startswith("TLD")]


class WithoutTextures(EmulatedDevice):
    """No texture has room for any matrix."""

    @property
    def most_texels(self) -> int:
        return 0


def run(rung: str, problem: GemmProblem, device: EmulatedDevice) -> tuple[Any, Any]:
    contents = OP.fill(problem, np.random.default_rng(2))
    buffers = {}
    for operand in OP.operands(problem):
        rows = np.zeros((operand.rows, operand.ld), np.float32)
        rows[:, : operand.cols] = contents[operand.name]
        buffers[operand.name] = device.upload(rows)
    bound = place(find_kernel(rung), device).bind(OP, problem, buffers)
    seen = bound.observe()
    assert seen.hazards == ()
    result = np.empty((problem.m, problem.ldc), np.float32)
    bound.download("c", result)
    return result.view(np.uint32), seen.counters


@pytest.mark.in_turns(20)
@each_rung
def test_without_textures_it_loads_the_same_from_global_memory(rung: str) -> None:
    problem = GemmProblem(72, 68, 20).with_layout("tn")
    by_texel, counted = run(rung, problem, EmulatedDevice("sm_90"))
    by_four, others = run(rung, problem, WithoutTextures("sm_90"))
    assert (by_texel == by_four).all()
    assert counted.facts()["global_load_requests"] == others.facts()["texture_load_requests"] == 0
    for what in ("requests", "sectors"):
        assert counted.facts()[f"texture_load_{what}"] == others.facts()[f"global_load_{what}"] > 0


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("problem", "fetched", "loaded"),
    [
        (GemmProblem(68, 64, 9, lda=68, trans_a=True), True, False),  # k is no extent of a piece
        (
            GemmProblem(66, 64, 8, lda=68, trans_a=True),
            True,
            True,
        ),  # whole tiles, and one whose last piece is not whole
        (GemmProblem(64, 64, 8, lda=66, trans_a=True), False, True),
        (GemmProblem(64, 64, 8, lda=12), True, False),
        (GemmProblem(64, 64, 9, lda=12), False, True),
    ],
)
def test_a_row_that_ends_within_a_texel_is_loaded_float_by_float(
    problem: GemmProblem, fetched: bool, loaded: bool
) -> None:
    _, counted = run("maxas_64", problem, EmulatedDevice("sm_90"))
    facts = counted.facts()
    assert (facts["texture_load_requests"] > 0, facts["global_load_requests"] > 0) == (fetched, loaded)


@pytest.mark.slow
@each_rung
@pytest.mark.parametrize("config", [{"SPLIT": 0, "LANE_MAP": 0}, {"COALESCE": 0, "TEXTURE": 0}])
def test_every_switch_leaves_it_right(rung: str, config: dict[str, int]) -> None:
    edge = find_kernel(rung).params["BM"] + 4
    cases = [GemmProblem(edge, edge - 8, 20, 0.5, -1.0).with_layout(layout) for layout in ("tn", "nn", "nt", "tt")]
    report = check_kernel(find_kernel(rung), EmulatedDevice("sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()
