"""Compiler options of a kernel file: those of nvcc, those that are refused, and the places that state them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.kernels.cuda_file.compile_options import compiler_options
from gemmlab.kernels.user_kernel import user_kernel
from support.cuda_source import needs_compiler
from support.paths import DATA

FILE = DATA / "user_kernels" / "as_published.cu"


@pytest.mark.parametrize(
    ("stated", "options"),
    [
        (["-DN=4", "-D", "M"], ["-DN=4", "-DM"]),
        (["-Icommon", "-I", "deep"], ["-I/x/common", "-I/x/deep"]),
        (["-O3", "--expt-relaxed-constexpr", "-std=c++20"], ["-std=c++20"]),
        (["-Xptxas", "-dlcm=ca", "--use_fast_math", "-maxrregcount=64"],
         ["-Xptxas=-dlcm=ca", "--use_fast_math", "-maxrregcount=64"]),
    ],
)  # fmt: skip
def test_options_as_nvcc_has_them(stated: list[str], options: list[str]) -> None:
    assert list(compiler_options(stated, Path("/x"))) == options


@pytest.mark.parametrize(
    ("stated", "left_out"),
    [
        (["-Xcompiler=-Wall,-O3", "-DN=4"], "-Xcompiler=-Wall,-O3"),
        (["-Xcompiler", "-I/host", "-DN=4", "-lcublas", "-L/usr/lib"], "-Xcompiler -I/host -lcublas -L/usr/lib"),
        (["-arch=sm_80", "-arch", "sm_90a", "-DN=4"], "-arch=sm_80 -arch sm_90a"),
        (["-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90", "-DN=4"],
         "-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90"),
        (["-rdc=true", "-ccbin", "g++-12", "-Werror", "-G", "-DN=4"], "-rdc=true -ccbin g++-12 -Werror -G"),
        (["-Werror", "all-warnings", "-Wno-deprecated-gpu-targets", "-l", "cudart", "-DN=4"],
         "-Werror all-warnings -Wno-deprecated-gpu-targets -l cudart"),
    ],
)  # fmt: skip
def test_options_that_only_nvcc_needs_are_left_out_and_named(
    stated: list[str], left_out: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "gemmlab"):
        assert compiler_options(stated, Path("/x")) == ("-DN=4",)
        compiler_options(stated, Path("/x"))
    assert [record.getMessage() for record in caplog.records] == [
        f"Only nvcc needs these options, which are left out: {left_out}"
    ]


@pytest.mark.parametrize("option", ["-Xcudafe=--output=/tmp/x", "-o", "-Xptxas=-o=/tmp/x", "--keep", "-dlto"])
def test_options_that_write_files_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match="no option that a kernel may be compiled with"):
        compiler_options([option], Path())


@pytest.mark.parametrize(
    ("header", "flags", "said"),
    [
        ('"--keep"', ["-DN=1"], "mine.cu:4: options: '--keep' is no option"),
        ('"-DN=1"', ["--keep"], "-I, -D or --option: '--keep' is no option"),
        ("3", ["-DN=1"], "mine.cu:4: options: 3 is not a list of texts"),
    ],
)
def test_a_wrong_option_is_told_with_the_place_that_states_it(
    tmp_path: Path, header: str, flags: list[str], said: str
) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(f'/* gemmlab\ngrid = "M"\nthreads = "N"\noptions = {header}\n*/\n'
                    "__global__ void mine(int M, int N, int K, float* A, float* B, float* C) {}\n")  # fmt: skip
    with pytest.raises(UsageError, match=f"^{said}"):
        user_kernel(file, options=flags)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("where", ["header", "flags"])
@pytest.mark.parametrize("verb", ["check", "bench", "profile", "explain", "compile"])
def test_options_hold_in_every_verb(tmp_path: Path, verb: str, where: str) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "scale.h").write_text("#define TIMES(x) ((x) * SCALE)\n")
    facts = 'grid = "ceil_div(N, 16), ceil_div(M, 16)"\nthreads = "16, 16"\n'
    if where == "header":
        facts += 'options = ["-Icommon", "-DSCALE=1.0f", "-O3"]\n'
    source = FILE.read_text().replace("sum;\n}", "TIMES(sum);\n}").replace("sgemm", "mine")
    file = tmp_path / "mine.cu"
    file.write_text(f'/* gemmlab\n{facts}*/\n#include "scale.h"\n{source}')
    flags = ["-I", str(tmp_path / "common"), "-DSCALE=1.0f", "--option=-O3"] if where == "flags" else []
    more = {"check": ["--sizes", "20"], "bench": ["--sizes", "20"], "profile": ["--sizes", "20"],
            "explain": ["--sizes", "64"], "compile": []}[verb]  # fmt: skip
    device = ["--device", "emulated"] if verb in ("check", "bench", "profile") else []
    result = CliRunner().invoke(build_app(), [verb, str(file), *flags, *more, *device])
    assert result.exit_code == 0, result.output
