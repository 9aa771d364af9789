"""The CUDA kernels of sums along axes: what their files state, what the compiler makes of them, every configuration."""

from __future__ import annotations

from typing import Any

import pytest

import gemmlab
from gemmlab.core.program import Artifact
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.cuda_kernel import MOST_CONFIGURATIONS
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.sums_op import SumsOp
from gemmlab.ops.sums_problem import SumsProblem, middle_axis
from gemmlab.sass.parse import parse
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

OP = SumsOp()
RUNGS = ladder("sums", "cuda")
each_rung = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in RUNGS])
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
NEST = SumsProblem(((3, 4000, 1),), ((70, 1), (9, 400)), "rising")


def built(kernel: Kernel, arch: str, instance: Any) -> Artifact:
    return build(kernel.program(instance, arch))


@each_rung
def test_a_file_states_what_it_is(kernel: Kernel) -> None:
    text = kernel.path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    assert all(len(line) <= 130 and line == line.rstrip() and "\t" not in line for line in text.splitlines())
    assert 1 < len(list(kernel.configurations())) <= MOST_CONFIGURATIONS
    assert not kernel.zeroed_workspace


@each_rung
def test_a_configuration_of_the_launch_alone_is_no_other_code(kernel: Kernel) -> None:
    """So a library call compiles few kernels: how large a team is and how many parts there are, the launch says."""
    of_launch = {"TEAM", "LANES", "SPLIT", "GROUPS", "BLOCKS"}
    programs = {
        kernel.program(kernel.instantiate({**kernel.params, **{n: config[n] for n in of_launch & set(config)}},
                                          OP.scalars(middle_axis(4, 4, 1))), "sm_90").fingerprint
        for config in kernel.configurations()
    }  # fmt: skip
    assert len(programs) == 1


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@each_rung
def test_all_loads_of_a_turn_are_under_way_without_spills(kernel: Kernel, arch: str) -> None:
    for instance in kernel.instances(kernel.configure()):
        made = built(kernel, arch, instance)
        facts = made.resources
        assert (facts["spill_stores"], facts["spill_loads"], facts["local_bytes"]) == (0, 0, 0)
        assert facts["registers"] <= 80
        kinds = [".".join((i.opcode, *i.modifiers)) for i in parse(made.texts["sass"])[made.entry].instructions]
        # Elements are staged one by one; all other kernels have loads of 16 bytes.
        width = "" if kernel.id == "sum_staged" else "128"
        wide = [index for index, kind in enumerate(kinds) if kind.startswith("LDG") and width in kind]
        turn = instance.get("LOADS", instance.get("ROWS", 0))
        assert "FADD" not in kinds[wide[0] : wide[turn - 1]]


@pytest.mark.in_turns(20)
@pytest.mark.timeout(300)
@needs_compiler
@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("sum_rows", {"TEAM": 1}), ("sum_rows", {"TEAM": 32}), ("sum_rows", {"TEAM": 128}), ("sum_rows", {"SPLIT": 3}),
        pytest.param("sum_rows", {"BLOCK": 512, "TEAM": 512, "SPLIT": 300}, marks=pytest.mark.slow),
        ("sum_rows", {"LOADS": 4, "TEAM": 64}),
        ("sum_staged", {"GROUPS": 1}), ("sum_staged", {"GROUPS": 7}),
        ("sum_staged", {"BLOCK": 128, "LOADS": 8, "GROUPS": 20}),
        ("sum_short_rows", {"TEAM": 1}), ("sum_short_rows", {"TEAM": 2, "ROWS": 2, "BLOCKS": 1}),
        ("sum_short_rows", {"TEAM": 32, "ROWS": 1}),
        pytest.param("sum_columns", {"LANES": 1, "SPLIT": 300}, marks=pytest.mark.slow),
        ("sum_columns", {"SPLIT": 5}), ("sum_columns", {"LANES": 256}),
        ("sum_columns", {"TEAM": 64, "LANES": 64}), ("sum_columns", {"TEAM": 16, "LANES": 4, "LOADS": 4}),
        ("sum_columns", {"BLOCK": 512, "TEAM": 512, "LANES": 8, "SPLIT": 2}),
    ],
)  # fmt: skip
def test_every_team_and_any_number_of_parts(name: str, config: dict[str, int]) -> None:
    kernel = find_kernel(name)
    shapes = [(5, 700, 1), (33, 9, 1), (3, 3001, 1), (1, 300, 37), (4, 40, 140), (2, 0, 3), (300, 5, 2)]
    shapes += [(33, 16, 3), (41, 12, 1)]
    cases = [*(middle_axis(*shape, "rising") for shape in shapes), NEST]
    cases = [case for case in cases if not kernel.refusal(kernel.configure(config), OP.scalars(case))]
    report = check_kernel(kernel, open_device("emulated:sm_90"), OP, config=config, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@each_rung
def test_a_default_size_is_explained_and_one_is_counted(kernel: Kernel) -> None:
    assert gemmlab.explain(kernel.id).sound
    assert any(row.verified for row in gemmlab.bench(kernel.id, device="emulated").counts)
