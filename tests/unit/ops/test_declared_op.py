"""Operations that a person states: what is refused, what is made of them, and who may run their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab import Array, Operation, UsageError
from gemmlab.core.elements import FLOAT16, FLOAT32, element
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.catalog import find_op, unit_of
from gemmlab.ops.declared import DeclaredOp
from gemmlab.ops.op import GFLOPS
from gemmlab.ops.op_file import declared, load_operation, op_named
from gemmlab.timing.worker import Worker
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler

STATED: dict[str, Any] = {
    "name": "scaled", "extents": ("m", "n"),
    "arrays": (Array("x", ("m", "n")), Array("y", ("m", "n"), role="out")), "scalars": {"factor": 2.0},
    "reference": lambda x, factor: factor * x, "bound": lambda y, u: u * np.abs(y), "shapes": ((1, 1), (3, 5)),
}  # fmt: skip
SCALED = Operation(**STATED)
KERNEL = """/* gemmlab
grid = "ceil_div(M * N, 64)"
threads = "64"
*/
#include <cuda_fp16.h>
__global__ void scaled(const half* x, half* y, float factor, int m, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < m * n) y[i] = __float2half(factor * __half2float(x[i]));
}
"""
ROWS = """/* gemmlab
grid = "M"
threads = "64"
*/
__global__ void rows(const float* x, float* y, float factor, int n) {
    for (int i = threadIdx.x; i < n; i += 64) y[blockIdx.x * n + i] = factor * x[blockIdx.x * n + i];
}
"""
SHARES = """/* gemmlab
grid = "M"
threads = "1"
*/
__global__ void shares(const float* x, float* y, int n) {
    const float* row = x + blockIdx.x * n;
    float most = 1e-9f;
    for (int i = 0; i < n; ++i) most = fmaxf(most, fabsf(row[i]));
    for (int i = 0; i < n; ++i) y[blockIdx.x * n + i] = row[i] / (ADDED + most);
}
"""
FILE = """from gemmlab import Array, Operation
operation = Operation(
    name="NAME", extents=("n",), arrays=(Array("x", ("n",)), Array("y", ("n",), role="out")),
    reference=lambda x: x, shapes=((3,),),
)
"""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "Not small"}, "'Not small' is no name in small letters"),
        ({"extents": ("m", "n", "n")}, "n is there twice"),
        ({"arrays": (Array("x", ("k",)),)}, "x has an unknown extent 'k'"),
        ({"arrays": (Array("x", ("m", "n")),)}, "no array is a result"),
        ({"unit": "GB"}, "unit 'GB' is neither GB/s nor GFLOP/s"),
        ({"shapes": ((1,),)}, "shapes has extents m, n for each case"),
    ],
)
def test_what_does_not_fit_together_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Operation(**{**STATED, **changed})


def test_arrays_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="role 'result' is none of in, out, inout"):
        Array("x", ("n",), role="result")
    with pytest.raises(UsageError, match=r"an array of one element has the shape \(1,\)"):
        Array("x", ())
    with pytest.raises(UsageError, match="no type of numbers named 'float'"):
        Array("x", ("n",), type="float")


def test_numbers_are_counted() -> None:
    op = DeclaredOp(SCALED)
    (problem,) = op.parse_sizes("3x5")
    assert (problem.label, op.flops(problem), op.bytes_moved(problem)) == ("3x5", 15, 120)
    assert op.typed({"x": FLOAT16, "y": FLOAT32}).bytes_moved(problem) == 90
    assert op.typed({"x": FLOAT16, "y": FLOAT32}).name == "scaled:float16,float32"
    assert op.problem_from_json(problem.to_json()) == problem
    with pytest.raises(UsageError, match="the fields are factor, m, n, scale"):
        op.problem_from_json({"m": 3})
    sized = DeclaredOp(Operation(**{**STATED, "flops": lambda m: m, "bytes": lambda n, x_bytes: n * x_bytes}))
    assert (sized.flops(problem), sized.bytes_moved(problem)) == (3, 20)


def test_results_have_bounds_with_the_rounding_to_their_type() -> None:
    op = DeclaredOp(SCALED).typed({"x": FLOAT16, "y": FLOAT16})
    (problem,) = op.parse_sizes("3x5")
    inputs = op.fill(problem, np.random.default_rng(0))
    expected = op.reference(problem, inputs)["y"]
    assert np.isnan(inputs["y"]).all()
    assert (expected.values == 2.0 * inputs["x"].astype(np.float64)).all()
    assert expected.bound == pytest.approx(2 * 2.0**-11 * np.abs(expected.values), abs=1e-7)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"reference": lambda x, k: x + k},
            "reference of .* its parameter 'k' is none of m, n, factor, x",
        ),
        (
            {"reference": lambda x: x[0]},
            r"operation scaled fails at 3x5: y has shape \(5,\), not \(3, 5\)",
        ),
        ({"reference": lambda x: {"z": x}}, "it returns z, without y"),
        ({"reference": lambda x: x[9]}, r"at 3x5 \(test_declared_op.py:\d+\): IndexError: index 9 is out of bounds"),
        ({"bound": lambda y: y[:, :2]}, "bound of operation scaled fails at 3x5: ValueError: "),
        (
            {"arrays": (Array("x", ("m", "n"), fill=lambda rng, _: rng.random(2)), STATED["arrays"][1])},
            "fill of x of operation scaled fails at 3x5: ValueError: cannot reshape",
        ),
    ],
)
def test_functions_that_do_not_fit_are_refused(changed: dict[str, Any], said: str) -> None:
    op = DeclaredOp(Operation(**{**STATED, **changed}))
    (problem,) = op.parse_sizes("3x5")
    with pytest.raises(UsageError, match=said):
        op.reference(problem, op.fill(problem, np.random.default_rng(0)))


def test_a_failing_function_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "halves.py"
    path.write_text(FILE.replace("NAME", "halves").replace("lambda x: x", "lambda x: x / x[:0].max()"))
    op = load_operation(path)
    (problem,) = op.parse_sizes("3")
    with pytest.raises(UsageError, match=r"halves\.py: reference of operation halves fails at 3 \(halves\.py:4\): V"):
        op.reference(problem, op.fill(problem, np.random.default_rng(0)))


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_wrong_kernel_is_judged_where_the_reference_is_defined(tmp_path: Path) -> None:
    """The search for conditions tries other shapes than the stated ones: with some the reference fails."""

    def shares(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x.shape[1] > 200:
            raise ArithmeticError("too long a row")
        return np.asarray(x / np.abs(x).max(axis=-1, keepdims=True))

    stated = {**STATED, "name": "shares", "reference": shares, "scales": (1.0, 100.0), "scalars": {}}
    declared(Operation(**stated))
    path = tmp_path / "shares.cu"
    for added, verdict in (("0.0f", "PASS"), ("(n % 2 ? 0.1f : 0.0f)", "WRONG AT EDGES: passes where N % 2 == 0")):
        path.write_text(SHARES.replace("ADDED", added))
        report = check_kernel(user_kernel(path, op="shares"), open_device("emulated:sm_80"), find_op("shares"))
        assert str(report.verdict) == verdict, report.explain()
    declared(Operation(**{**stated, "shapes": ((1, 1), (2, 300))}))
    with pytest.raises(UsageError, match=r"reference of operation shares fails at 2x300 .*: Arithmetic"):
        check_kernel(user_kernel(path, op="shares"), open_device("emulated:sm_80"), find_op("shares"))


def test_a_stated_type_stays() -> None:
    stated = Operation(**{**STATED, "arrays": (Array("x", ("m",), type="int32"), Array("y", ("m", "n"), role="out"))})
    op = DeclaredOp(stated)
    assert [one.element.name for one in op.operands(op.parse_sizes("2x2")[0])] == ["int32", "float32"]
    with pytest.raises(UsageError, match="x is of float16; the operation has it in int32"):
        op.typed({"x": FLOAT16})
    assert op.typed({"x": element("int32"), "y": FLOAT16}).name == "scaled:int32,float16"


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_of_halves_is_checked(tmp_path: Path) -> None:
    declared(SCALED)
    (tmp_path / "scaled.cu").write_text(KERNEL, encoding="utf-8")
    kernel = user_kernel(tmp_path / "scaled.cu", op="scaled")
    assert kernel.op == "scaled:float16"
    assert check_kernel(kernel, open_device("emulated:sm_80"), find_op(kernel.op)).passed
    (tmp_path / "scaled.cu").write_text(KERNEL.replace("i < m * n", "i < m * n - 1"), encoding="utf-8")
    assert not check_kernel(kernel := user_kernel(tmp_path / "scaled.cu", op="scaled"),
                            open_device("emulated:sm_80"), find_op(kernel.op)).passed  # fmt: skip


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_extent_that_grid_or_threads_name_needs_no_argument(tmp_path: Path) -> None:
    declared(SCALED)
    path = tmp_path / "rows.cu"
    path.write_text(ROWS, encoding="utf-8")
    kernel = user_kernel(path, op=SCALED.name)
    assert [restriction.that.text for restriction in kernel.restrictions] == []
    report = check_kernel(kernel, open_device("emulated"), find_op(kernel.op))
    assert (report.passed, report.refused) == (True, {}), report.explain()


def test_a_later_operation_takes_the_place_of_an_earlier_one() -> None:
    declared(SCALED)
    later = declared(Operation(**{**STATED, "extents": ("m", "n", "other"), "shapes": ((1, 1, 1),)}))
    assert find_op("scaled") is later
    declared(SCALED)
    with pytest.raises(UsageError, match="'gemm' is an operation of gemmlab"):
        declared(Operation(**{**STATED, "name": "gemm"}))


def test_a_file_is_run_only_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "copied.py"
    path.write_text(FILE.replace("NAME", "copied"), encoding="utf-8")
    with pytest.raises(UsageError, match="no operation named"):
        find_op(str(path))
    (tmp_path / "copied.cu").write_text(KERNEL.replace("/* gemmlab", f'/* gemmlab\nop = "{path}"'), encoding="utf-8")
    with pytest.raises(UsageError, match="is a Python file: only the command line can name one, as --op /"):
        user_kernel(tmp_path / "copied.cu")
    assert unit_of("copied") == GFLOPS
    op = op_named(str(path))
    assert (op.name, op.file, unit_of("copied")) == ("copied", str(path), "GB/s")


def test_a_worker_runs_the_file_that_its_parent_names(tmp_path: Path) -> None:
    path = tmp_path / "brought.py"
    path.write_text(FILE.replace("NAME", "brought"), encoding="utf-8")
    worker = Worker(None)  # type: ignore[arg-type]
    spec = {"kind": "numpy", "mode": "warm", "device": "cpu"}
    assert worker.answer({"command": "open", "name": "numpy", "spec": spec, "op_file": str(path)}) == {"ok": True}
    assert find_op("brought").file == str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("x = 1", "states 0 operations"),
        (FILE.replace("NAME", "one") + FILE.replace("NAME", "two").replace("operation =", "other ="), "states 2"),
    ],
)
def test_files_that_state_no_operation_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "stated.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        load_operation(path)
    with pytest.raises(UsageError, match="no such file"):
        load_operation(tmp_path / "other.py")
