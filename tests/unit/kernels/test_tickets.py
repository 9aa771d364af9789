"""Kernels whose blocks meet: tickets are zero before and after a launch, the workspace is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

OP = ReduceOp()
SOURCE = """/* gemmlab
op = "reduce"
params = { BLOCKS = 3 }
grid = "BLOCKS"
threads = 1
workspace = "4 * blocks"
tickets = "1"
roundings = "N + blocks"
require = ["OPERATOR == 0"]
*/
__global__ void meet(long long N, const float* x, float* out, void* workspace, unsigned* tickets)
{
    float own = 0.0f;
    for (long long i = blockIdx.x; i < N; i += gridDim.x) own += x[i];
    float* const parts = static_cast<float*>(workspace);
    PART
    __threadfence();
    if (atomicInc(tickets, LAST) != gridDim.x - 1) return;
    __threadfence();
    float sum = 0.0f;
    for (unsigned block = 0; block < gridDim.x; ++block) sum += __ldcg(parts + block);
    *out = sum;
}
"""


def kernel_with(folder: Path, last: str = "gridDim.x - 1", part: str = "parts[blockIdx.x] = own;") -> Kernel:
    path = folder / "meet.cu"
    path.write_text(SOURCE.replace("LAST", last).replace("PART", part))
    return user_kernel(path)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_puts_its_tickets_back_is_right(tmp_path: Path) -> None:
    kernel = kernel_with(tmp_path)
    assert not kernel.zeroed_workspace
    problem = ReduceProblem(1000)
    assert (kernel.tickets(problem, kernel.configure()), kernel.workspace_bytes(problem, kernel.configure())) == (1, 12)
    report = check_kernel(kernel, open_device("emulated:sm_90"), OP, cases=[problem, ReduceProblem(2)])
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"last": "gridDim.x"}, "1 of its tickets are not 0"),
        ({"part": "if (N < 5) parts[blockIdx.x] = own;"}, "unwritten"),
    ],
)
def test_tickets_left_and_parts_not_written_are_found(tmp_path: Path, change: dict[str, str], complaint: str) -> None:
    kernel = kernel_with(tmp_path, **change)
    report = check_kernel(kernel, open_device("emulated:sm_90"), OP, cases=[ReduceProblem(1000)])
    assert not report.passed
    assert complaint in report.explain()


@needs_compiler
def test_tickets_stay_zero_from_run_to_run(tmp_path: Path) -> None:
    kernel, device, problem = kernel_with(tmp_path), open_device("emulated:sm_90"), ReduceProblem(10)
    contents = OP.fill(problem, np.random.default_rng(1))
    buffers = {operand.name: device.upload(contents[operand.name]) for operand in OP.operands(problem)}
    bound = place(kernel, device).bind(OP, problem, buffers)
    for _ in range(2):
        bound.run()
        assert bound.nonzero_tickets() == 0


def test_an_operand_of_unsigned_numbers_is_refused_by_its_type(tmp_path: Path) -> None:
    path = tmp_path / "odd.cu"
    path.write_text("__global__ void odd(long long N, const unsigned* x, float* out) {}\n")
    with pytest.raises(UsageError, match="x is of uint32; the operation reduce takes only float32"):
        user_kernel(path, op="reduce", grid="1", threads=1)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_relies_on_its_workspace_is_launched_twice(tmp_path: Path) -> None:
    """It counts there, and no longer writes its result once the count is full."""
    path = tmp_path / "once.cu"
    path.write_text(
        '/* gemmlab\nop = "reduce"\ngrid = "1"\nthreads = 1\nworkspace = "4"\nrequire = ["OPERATOR == 0"]\n'
        'roundings = "N"\n*/\n'
        "__global__ void once(long long N, const float* x, float* out, void* workspace)\n{\n"
        "    if (atomicAdd(static_cast<unsigned*>(workspace), 1u) >= 1u) return;\n"
        "    float sum = 0.0f;\n    for (long long i = 0; i < N; ++i) sum += x[i];\n    *out = sum;\n}\n"
    )
    report = check_kernel(user_kernel(path), open_device("emulated:sm_90"), OP, cases=[ReduceProblem(10)])
    assert not report.passed
    assert "out" in report.explain()
