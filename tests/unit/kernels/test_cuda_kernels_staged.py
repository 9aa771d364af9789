"""The rungs whose steady loop has no guard: their machine code, and configurations beside the default."""

from __future__ import annotations

import pytest

from gemmlab.core.program import Artifact
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.loops import find_loops
from gemmlab.sass.metrics import share
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = GemmOp()
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")


def built(kernel_id: str, arch: str, layout: str = "nn", **config: int) -> Artifact:
    kernel = find_kernel(kernel_id)
    scalars = OP.scalars(GemmProblem(1, 1, 1).with_layout(layout))
    return build(kernel.program(kernel.instantiate(kernel.configure(config), scalars), arch))


def product_loops(artifact: Artifact) -> list[list[Instruction]]:
    """The loops over k-blocks: the one for operands in fours, then that for single floats, where they differ."""
    graph = flow_graph(parse(artifact.texts["sass"])[artifact.entry])
    bodies = [list(graph.instructions(*sorted(loop.blocks))) for loop in find_loops(graph)]
    found = [body for body in bodies if sum(i.opcode == "FFMA" for i in body) > len(body) / 2]

    def by_single_floats(body: list[Instruction]) -> bool:
        return not any(i.opcode in ("LDG", "LDGSTS") and "128" in i.modifiers for i in body)

    return sorted(found, key=lambda body: (by_single_floats(body), len(body)))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_the_loop_of_async_copy_is_nearly_all_products(arch: str, layout: str) -> None:
    loops = product_loops(built("async_copy", arch, layout))
    assert share(loops[0], "FFMA") > 0.91
    for body in loops:
        assert share(body, "FFMA") > 0.9
        assert sum(i.opcode == "FFMA" for i in body) == 8 * 16 * 8
        assert not [i.text for i in body if i.opcode in ("LDG", "STS", "LDL", "STL")]
        # All loads that read anything are 16 bytes wide: the others are never executed.
        assert all("128" in i.modifiers or i.predicate is not None for i in body if i.opcode == "LDS")
        assert sum(i.opcode == "BAR" for i in body) == 1


def test_loads_hold_registers_where_cp_async_is_not_used() -> None:
    (fours, _) = product_loops(built("conflict_free", "sm_90"))
    names = [i.name for i in fours]
    assert names.count("LDG.E.128") == 2
    assert (names.count("STS"), names.count("STS.128"), names.count("LDS.128")) == (4, 1, 32)
    assert not [name for name in names if name.startswith("LDGSTS")]


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_load_of_unguarded_cuts_its_loop(arch: str) -> None:
    """Each is predicated; the loop that it comes after has a branch around each k-block's loads."""
    artifact = built("unguarded", arch)
    code = parse(artifact.texts["sass"])[artifact.entry].instructions
    barrier = next(place for place, i in enumerate(code) if i.opcode == "BAR")
    loads = [place for place, i in enumerate(code) if i.opcode == "LDG" and place > barrier][:8]
    assert all(code[place].predicate is not None and "128" in code[place].modifiers for place in loads)
    between = {i.opcode for i in code[barrier : loads[-1]]}
    assert not between & {"BRA", "BSSY", "BSYNC", "CALL", "LDL", "STL"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel_id", "config"),
    [
        ("unguarded", {"BK": 8, "WN": 32, "ORDER": 1}),
        ("unguarded", {"BM": 64, "BN": 64, "WN": 32, "WNITER": 1}),
        ("conflict_free", {"LANE_MAP": 0, "BK": 16}),
        ("conflict_free", {"BM": 64, "BN": 64}),
        ("async_copy", {"STAGES": 2, "TURN_ASYNC": 0}),
        ("async_copy", {"BM": 256, "BN": 128, "STAGES": 4, "BK": 16}),
        ("block_swizzle", {"BN": 128, "TM": 8, "ORDER": 1, "GROUP": 2}),
        ("block_swizzle", {"BM": 128, "BN": 128, "GROUP": 3}),
    ],
)
def test_other_configurations_are_right_too(kernel_id: str, config: dict[str, int]) -> None:
    shapes = ((300, 517, 21), (129, 260, 8), (1, 5, 70), (37, 64, 0), (128, 384, 64))
    cases = [GemmProblem(*shape, 0.5, -1.0).with_layout(layout) for shape in shapes for layout in ("nn", "tt")]
    report = check_kernel(find_kernel(kernel_id), open_device("emulated:sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()
