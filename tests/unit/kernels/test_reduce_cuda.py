"""The reduction's CUDA kernels: what their files state, how they are launched, what the compiler makes of them."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact, Launch
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.cuda_kernel import MOST_CONFIGURATIONS, shipped_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from support.cuda_source import needs_compiler

OP = ReduceOp()
RUNGS = ladder("reduce", "cuda")
IN_PASSES = [kernel for kernel in RUNGS if "tickets" not in kernel.args]
each_rung = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in RUNGS])
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")


def launches(kernel: Kernel, n: int, **config: int) -> list[Launch]:
    problem = ReduceProblem(n)
    scalars = OP.scalars(problem)
    instance = kernel.instantiate(kernel.configure(config), scalars)
    workspace = SimpleNamespace(address=0, nbytes=kernel.workspace_bytes(problem, instance))
    tickets = SimpleNamespace(address=0, nbytes=4 * kernel.tickets(problem, instance))
    memory = {"workspace": workspace, "tickets": tickets}
    bound: dict[str, Any] = {**scalars, "x": "x", "out": "out", "threads": np.int64(1), **memory}
    return kernel.launches(instance, bound)


def roundings(kernel: Kernel, n: int, **config: int) -> int:
    scalars = OP.scalars(ReduceProblem(n))
    found = kernel.roundings(kernel.instantiate(kernel.configure(config), scalars), scalars)
    assert found is not None
    return found


def built(kernel: Kernel, arch: str, operator: str = "sum", **config: int) -> Artifact:
    scalars = OP.scalars(ReduceProblem(1, operator))
    return build(kernel.program(kernel.instantiate(kernel.configure(config), scalars), arch))


@each_rung
def test_a_file_states_what_it_is(kernel: Kernel) -> None:
    text = kernel.path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert all(len(line) <= 120 and line == line.rstrip() and "\t" not in line for line in text.splitlines())
    assert kernel.idea.endswith(".")
    memory = ("workspace", "tickets") if kernel.id == "reduce_peak" else ()
    assert (kernel.args, kernel.restrictions) == (("n", "x", "out", *memory), ())
    assert kernel.from_problem == ("OPERATOR",)
    configurations = list(kernel.configurations())
    assert 1 < len(configurations) <= MOST_CONFIGURATIONS
    assert {config["BLOCK"] for config in configurations} >= {256, 512, 1024}


@each_rung
def test_every_operator_is_an_instance(kernel: Kernel) -> None:
    instances = kernel.instances(kernel.configure())
    assert [instance["OPERATOR"] for instance in instances] == [0, 1, 2]
    entries = {kernel.program(instance, "sm_90").entry for instance in instances}
    assert len(entries) == 3


@each_rung
def test_any_length_is_launched_and_ends_in_one_result(kernel: Kernel) -> None:
    for n in (0, 1, 2, 255, 256, 257, 65_536, 65_537, 2**31 - 1, 2**31 + 5, 2**33):
        for config in kernel.configurations():
            found = launches(kernel, n, **config)
            assert found[0].args[0] == n
            assert isinstance(found[0].args[0], np.int64)
            assert found[0].args[1] == "x"
            assert found[-1].args[2] == "out"
            assert all(1 <= launch.grid[0] < 2**31 and launch.grid[1:] == (1, 1) for launch in found)
            for before, after in pairwise(found):
                assert after.args[0] == before.grid[0]
                assert after.args[1] is before.args[2]
            assert found[-1].grid[0] == 1 or kernel.id == "reduce_peak"


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in IN_PASSES])
def test_partial_results_have_room_of_their_own(kernel: Kernel) -> None:
    for n in (257, 70_000, 2**31 + 5):
        found = launches(kernel, n)
        windows = [launch.args[2] for launch in found[:-1]]
        assert [window.nbytes for window in windows] == [4 * launch.grid[0] for launch in found[:-1]]
        ends = [window.offset + window.nbytes for window in windows]
        assert all(window.offset % 256 == 0 for window in windows)
        assert all(end <= window.offset for end, window in zip(ends, windows[1:], strict=False))
        assert all(end <= window.whole.nbytes for end, window in zip(ends, windows, strict=True))


def test_the_last_block_s_workspace_has_a_word_a_block() -> None:
    peak = find_kernel("reduce_peak")
    for n, blocks, tickets in ((0, 1, 0), (70_000, 35, 1), (2**31 + 5, 264, 1)):
        (launch,) = launches(peak, n)
        assert launch.grid[0] == blocks
        assert [memory.nbytes for memory in launch.args[3:]] == [4 * blocks * tickets, 4 * tickets]


def test_two_phases_at_the_article_s_size() -> None:
    grids = [launch.grid[0] for launch in launches(find_kernel("reduce_interleaved"), 32 << 20)]
    assert grids == [128 << 10, 512, 2, 1]
    assert [launch.grid[0] for launch in launches(find_kernel("reduce_shuffle"), 32 << 20)] == [1024, 1]
    assert [launch.grid[0] for launch in launches(find_kernel("reduce_peak"), 32 << 20)] == [264]


def test_roundings_are_those_of_all_launches() -> None:
    tree = find_kernel("reduce_sequential")
    assert [roundings(tree, n) for n in (1, 256, 257, 65_537)] == [10, 10, 20, 30]
    steps = find_kernel("reduce_grid_stride")
    # 64 turns of two elements, then the tree; the blocks' 16 results are one turn and the tree.
    assert roundings(steps, 2 * 256 * 16 * 64, BLOCKS=16) == (2 * 64 + 10) + (2 + 10)
    peak = find_kernel("reduce_peak")
    assert roundings(peak, 1 << 30) < 2100
    assert roundings(peak, 1 << 10) < 30


@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@each_rung
def test_it_compiles_without_spills(kernel: Kernel, arch: str) -> None:
    for operator in ("sum", "min"):
        facts = built(kernel, arch, operator).resources
        assert (facts["spill_stores"], facts["spill_loads"], facts["local_bytes"]) == (0, 0, 0)
        assert facts["registers"] <= 64


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("block", "loads"), [(512, 8), (256, 8), (1024, 4)])
def test_peak_asks_for_all_its_vectors_before_it_uses_one(arch: str, block: int, loads: int) -> None:
    made = built(find_kernel("reduce_peak"), arch, BLOCK=block, LOADS=loads)
    instructions = parse(made.texts["sass"])[made.entry].instructions
    kinds = [".".join((i.opcode, *i.modifiers)) for i in instructions]
    wide = [index for index, kind in enumerate(kinds) if kind.startswith("LDG") and "128" in kind]
    # The main loop's come first; between them nothing is added up.
    between = kinds[wide[0] : wide[loads - 1]]
    assert len(wide) >= 2 * loads
    assert "FADD" not in between
    assert "FADD" in kinds[wide[loads - 1] : wide[loads]]


GOOD = """/* gemmlab
summary = "s"
idea = "i."
source = "x"
op = "reduce"
params = { BLOCK = 64 }
grid = "max(1, ceil_div(N, BLOCK))"
threads = "BLOCK"
again = { N = "blocks", x = "out" }
*/
template <int BLOCK, int OPERATOR>
__global__ void mine(long long N, const float* x, float* out) {}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('N = "blocks", x = "out"', 'N = "blocks"', "again: .* is not an extent that becomes blocks"),
        ('N = "blocks", x = "out"', 'M = "blocks", x = "out"', "again: .* is not an extent"),
        ('N = "blocks", x = "out"', 'N = "blocks", x = "y"', "again: .* is not an extent"),
        ("again = {", 'roundings = "blocks + MISSING"\nagain = {', "roundings: .*no value named 'MISSING'"),
        ("again = {", 'workspace = "4 * blocks"\nagain = {', "workspace: a kernel with `again` has a"),
        ('again = { N = "blocks", x = "out" }', 'workspace = "4 * blocks"', "args: .*WORKSPACE was not found"),
        ("float* out", "float* out, void* workspace", "args: .*'void\\* workspace' is none of them"),
    ],
)  # fmt: skip
def test_a_wrong_statement_is_refused(tmp_path: Any, old: str, new: str, said: str) -> None:
    path = tmp_path / "reduce_cuda" / "mine.cu"
    path.parent.mkdir()
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(UsageError, match=said):
        shipped_kernel(path)


def test_launches_that_would_never_end_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "reduce_cuda" / "mine.cu"
    path.parent.mkdir()
    path.write_text(GOOD.replace("max(1, ceil_div(N, BLOCK))", "N + 1"))
    with pytest.raises(UsageError, match="8 blocks for 7 elements: launching again would never end"):
        launches(shipped_kernel(path), 7)


def test_a_parameter_may_be_the_launch_s_alone(tmp_path: Any) -> None:
    path = tmp_path / "reduce_cuda" / "mine.cu"
    path.parent.mkdir()
    text = GOOD.replace("BLOCK = 64", "BLOCK = 64, BLOCKS = 4").replace("ceil_div(N, BLOCK)", "min(BLOCKS, N // 9)")
    path.write_text(text)
    assert [launch.grid[0] for launch in launches(shipped_kernel(path), 1000)] == [4, 1]
    path.write_text(text.replace("out) {}", "out) { int BLOCKS = 3; }"))
    with pytest.raises(UsageError, match="BLOCKS is no parameter of mine's template"):
        shipped_kernel(path)
