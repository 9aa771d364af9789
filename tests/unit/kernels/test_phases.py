"""Kernels of several launches: `phases` in the header, `phase` in what it states of a launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.analysis.model.kernel_study import study
from gemmlab.analysis.subject import observe
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import model
from gemmlab.devices.select import open_device
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

OP = ReduceOp()
SOURCE = """/* gemmlab
op = "reduce"
params = { BLOCKS = 3, HALF = 50 }
phases = "1 + ceil_div(N, HALF)"
args = "N, x, out, workspace, tickets, phase, phase * HALF"
grid = "BLOCKS if phase * HALF < N else min(1, N)"
threads = "32 if phase * HALF < N else 1"
smem_bytes = "4 * phase"
workspace = "4 * BLOCKS * ceil_div(N, HALF) * blocks"
tickets = "1"
roundings = "N"
require = ["OPERATOR == 0"]
*/
// Each phase leaves sums of HALF elements; the last one adds them up.
template <int BLOCKS, int HALF>
__global__ void sums(
    long long N, const float* x, float* out, void* workspace, unsigned* tickets, int phase, long long first)
{
    float* const parts = static_cast<float*>(workspace);
    if (first < N) {
        if (threadIdx.x > 0) return;
        float own = 0.0f;
        for (long long i = first + blockIdx.x; i < min(first + HALF, N); i += BLOCKS) own += x[i];
        parts[phase * BLOCKS + blockIdx.x] = own;
        if (blockIdx.x == 0) *tickets = TICKET;
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < phase * BLOCKS; ++i) sum += parts[i];
    *out = sum;
    *tickets = 0;
}
"""


def kernel_with(folder: Path, *changes: tuple[str, str]) -> Kernel:
    text = SOURCE.replace("TICKET;", "1;")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "sums.cu"
    path.write_text(text)
    return user_kernel(path)


def launches(kernel: Kernel, size: int) -> list[Any]:
    bound = {**OP.scalars(ReduceProblem(size)), **dict.fromkeys(("x", "out", "workspace", "tickets"))}
    return kernel.launches(kernel.instantiate(kernel.configure(), bound), bound)


def test_each_launch_has_its_grid_its_block_its_memory_and_its_arguments(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    found = launches(kernel, 120)
    assert [launch.grid[0] for launch in found] == [3, 3, 3, 1]
    assert [launch.threads[0] for launch in found] == [32, 32, 32, 1]
    assert [launch.smem_bytes for launch in found] == [0, 4, 8, 12]
    assert [(int(launch.args[-2]), int(launch.args[-1])) for launch in found] == [(0, 0), (1, 50), (2, 100), (3, 150)]
    assert kernel.args[-2:] == ("phase", "phase * HALF")
    # `blocks` are those of the last launch, which makes the result.
    assert kernel.workspace_bytes(ReduceProblem(120), kernel.configure()) == 4 * 3 * 3


@pytest.mark.in_turns(20)
@needs_compiler
def test_what_a_launch_leaves_is_there_for_the_next_one(tmp_path: Path) -> None:
    cases = [ReduceProblem(size) for size in (1, 49, 50, 51, 1000)]
    report = check_kernel(kernel_with(tmp_path), open_device("emulated:sm_90"), OP, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_tickets_are_zero_after_the_last_launch_not_between(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, ("*tickets = 0;", ""))
    report = check_kernel(kernel, open_device("emulated:sm_90"), OP, cases=[ReduceProblem(100)])
    assert "1 of its tickets are not 0" in report.explain()


def test_without_a_last_launch_there_is_none(tmp_path: Path) -> None:
    """Earlier ones would leave in tickets and memory what nothing takes away again."""
    kernel = kernel_with(tmp_path, ("min(1, N)", "0"))
    assert launches(kernel, 120) == []
    # One before the last may have nothing to do.
    kernel = kernel_with(tmp_path, ('"BLOCKS if', '"0 if phase == 1 else BLOCKS if'))
    assert [launch.smem_bytes for launch in launches(kernel, 120)] == [0, 8, 12]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('phases = "1 + ceil_div(N, HALF)"', 'phases = "MISSING"', r"sums\.cu:4: phases: .*no value named 'MISSING'"),
        ('phases = "1 + ceil_div(N, HALF)"', 'phases = "phase + 1"', "phases: .*no value named 'phase'"),
        ('phases = "1 + ceil_div(N, HALF)"', "phases = 0", r"sums\.cu:4: phases: 0 launches; at least 1 is possible"),
        ('phases = "1 + ceil_div(N, HALF)"', "phases = 1.5", "phases: 1.5 is neither a whole number nor an expression"),
        ('phases = "1 + ceil_div(N, HALF)"', 'phases = "2 +"', "phases: expression '2 \\+'"),
        ('workspace = "4 ', 'again = { N = "blocks", x = "out" }\nworkspace = "4 ', "phases: a kernel that is launc"),
        ('workspace = "4 * ', 'workspace = "4 * phase * ', "workspace: .*no value named 'phase'"),
        ('require = ["', 'require = ["phase > 0", "', "require: .*no value named 'phase'"),
        ('args = "N, x, out, workspace, tickets, phase, phase * HALF"\n', "", "'int phase' is none of them"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_file_line_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        kernel_with(tmp_path, (old, new))


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ("N - 120", r"sums: phases = N - 120 gives 0 launches; at least 1 is possible"),
        ("N // (N - 120)", "sums: phases: expression .*division by zero"),
    ],
)
def test_a_number_of_launches_that_makes_no_sense_is_refused_when_it_is_known(
    tmp_path: Path, phases: str, said: str
) -> None:
    kernel = kernel_with(tmp_path, ("1 + ceil_div(N, HALF)", phases))
    with pytest.raises(UsageError, match=said):
        launches(kernel, 120)


def test_a_kernel_of_one_launch_may_name_its_number(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path, ('phases = "1 + ceil_div(N, HALF)"\n', ""))
    (launch,) = launches(kernel, 120)
    assert launch.args[-2] == np.int32(0)


def test_the_model_of_one_launch_says_that_there_are_more(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    assert kernel.phased
    with pytest.raises(UsageError, match="sums is launched several times for different things; the model knows one"):
        study(kernel, "sm_90")


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_launch_that_makes_the_result_is_explained(tmp_path: Path) -> None:
    subject = observe(kernel_with(tmp_path), "sm_90", model("H200"), {}, "120")
    assert (subject.launch.grid[0], subject.launch.threads[0], subject.wrong) == (1, 1, ())
