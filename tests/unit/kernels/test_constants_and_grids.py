"""Kernel files whose blocks wait for each other, and whose `__constant__` variables a host would set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Launch
from gemmlab.devices.select import open_device
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.paths import DATA
from support.users_files import launch_of

FILE = DATA / "user_kernels" / "waits_for_all.cu"
OP = GemmOp()


def edited(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the file with some texts replaced, under another name, and return it."""
    text = FILE.read_text().replace("void waits_for_all", "void mine")
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    path = folder / "mine.cu"
    path.write_text(text)
    return path


def checked(path: Path, sizes: str) -> Any:
    return check_kernel(user_kernel(path), open_device("emulated:sm_80"), OP, cases=OP.parse_sizes(sizes))


def test_values_are_those_of_the_problem_in_the_types_of_the_file() -> None:
    kernel = user_kernel(FILE)
    scalars = OP.scalars(GemmProblem(3, 4, 5, alpha=0.25))
    found = {name: value({}, scalars) for name, value in kernel.constants.items()}
    assert {name: value.tolist() for name, value in found.items()} == {
        "extents": [3, 4, 5], "scale": [0.25, 0.5], "shift": [2], "terms": [5],
    }  # fmt: skip
    assert {name: value.dtype.name for name, value in found.items()} == {
        "extents": "int32", "scale": "float32", "shift": "int16", "terms": "int32",
    }  # fmt: skip
    assert launch_of(kernel, GemmProblem(300, 300, 5)).cooperative
    assert not Launch(()).cooperative


@pytest.mark.in_turns(20)
@needs_compiler
def test_such_a_kernel_is_right_and_without_hazards(tmp_path: Path) -> None:
    report = check_kernel(user_kernel(FILE), open_device("emulated:sm_80"), OP, cases=(
        GemmProblem(33, 35, 31), GemmProblem(18, 17, 16, alpha=0.0), GemmProblem(8, 16, 16, alpha=-1.5),
    ))  # fmt: skip
    assert report.passed, report.explain()
    wrong = checked(edited(tmp_path, ('terms = "K if', 'terms = "K - 1 if')), "33x35x31")
    assert not wrong.passed


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("verb", ["check", "explain", "bench"])
def test_every_verb_takes_it(verb: str) -> None:
    device = [] if verb == "explain" else ["--device", "emulated:sm_80"]
    result = CliRunner().invoke(build_app(), [verb, str(FILE), "--sizes", "64", *device])
    assert result.exit_code == 0, result.output
    assert "cooperative" not in result.output


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_launch_that_is_not_cooperative_is_told_the_key(tmp_path: Path) -> None:
    report = checked(edited(tmp_path, ("cooperative = true\n", "")), "20")
    assert not report.passed
    assert "in the header of a kernel file `cooperative = true`" in report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_blocks_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    path = edited(tmp_path, ("min(ceil_div(M * N, 256), 48)", "M * N"))
    assert checked(path, "20").passed
    with pytest.raises(
        UsageError, match="mine: a cooperative launch of 1600 blocks; 864 are resident together on A100"
    ):
        checked(path, "40")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_variable_that_nobody_sets_is_named(tmp_path: Path) -> None:
    report = checked(edited(tmp_path, ("shift = 2\n", "")), "20")
    assert not report.passed
    hint = (
        "the __constant__ variable shift holds only zeros: if a host program sets them, state the values, constants = {"
    )
    assert hint in report.explain()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("cooperative = true", "cooperative = 1", "4: cooperative: 1 is neither true nor false"),
        ("cooperative = true", "early = true\ncooperative = true", "5: cooperative: launches of a cooperative kernel"),
        ("shift = 2", "shift2 = 2", r"11: constants: no __constant__ variable 'shift2'; .*shift"),
        ("shift = 2", "shift = true", "11: constants: shift = True is neither a number, an expression nor a list"),
        ("shift = 2", "shift = []", r"11: constants: shift = \[\] is neither"),
        ("shift = 2", 'shift = "Q"', "11: constants: expression 'Q': no value named 'Q'"),
        ("shift = 2", '"a b" = 2', "11: constants: 'a b' is no name of a variable"),
        ('"alpha", 0.5', '"alpha"', "10: constants: scale has 2 elements, not 1"),
        ("short shift", "dim3 shift", "11: constants: shift is of dim3; only numbers can be stated"),
    ],
)
def test_faults_of_the_header_name_file_line_and_key(tmp_path: Path, before: str, after: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"mine.cu:{words}"):
        user_kernel(edited(tmp_path, (before, after)))


@pytest.mark.parametrize(
    ("values", "words"),
    [("shift = 40000", "40000 does not fit in 'short shift'"), ('shift = "M // beta"', "expression 'M // beta': ")],
)
def test_a_value_that_does_not_fit_names_file_line_and_key(tmp_path: Path, values: str, words: str) -> None:
    kernel = user_kernel(edited(tmp_path, ("shift = 2", values)))
    with pytest.raises(UsageError, match=f"mine.cu:11: constants: {words}"):
        kernel.constants["shift"]({}, OP.scalars(GemmProblem(3, 4, 5)))


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_variable_of_another_size_names_the_file(tmp_path: Path) -> None:
    path = edited(
        tmp_path, ("scale[2]", "scale[PAIR + 1]"), ("namespace host_set {", "#define PAIR 2\nnamespace host_set {")
    )
    with pytest.raises(
        UsageError, match=r"mine\.cu: constants: mine: constant scale has 12 bytes; it was given float32"
    ):
        checked(path, "8")


def test_numbers_of_other_types(tmp_path: Path) -> None:
    path = edited(tmp_path, ("short shift", "__nv_bfloat16 shift[1]"), ("int terms", "unsigned char terms"))
    kernel = user_kernel(path)
    scalars = OP.scalars(GemmProblem(3, 4, 300))
    assert kernel.constants["shift"]({}, scalars).tobytes() == np.array([0x4000], np.uint16).tobytes()
    with pytest.raises(UsageError, match="constants: 300 does not fit in 'unsigned char terms'"):
        kernel.constants["terms"]({}, scalars)


@pytest.mark.parametrize("key", ["cooperative", "constants"])
def test_a_rung_has_neither(tmp_path: Path, key: str) -> None:
    path = tmp_path / "gemm_cuda" / "mine.cu"
    path.parent.mkdir()
    stated = {"cooperative": "cooperative = true", "constants": "constants = { a = 1 }"}[key]
    facts = "".join(f'{name} = "x"\n' for name in ("summary", "idea", "source"))
    path.write_text(
        f'/* gemmlab\n{facts}op = "gemm"\ngrid = 1\nthreads = 1\n{stated}\n*/\n__global__ void mine() {{}}\n'
    )
    with pytest.raises(UsageError, match=f"{key}: a library call can neither launch blocks together nor set constants"):
        shipped_kernel(path)
