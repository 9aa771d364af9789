"""The check of control codes accuses no code that a compiler made of kernels unlike those of the catalog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.latencies import latencies
from gemmlab.sass.parse import parse
from gemmlab.toolchain.compilation import compile_cubin
from gemmlab.toolchain.nvdisasm import disassemble
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

FILES = sorted((Path(__file__).parents[3] / "makers/latency_kernels").glob("*.cu"))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [("-use_fast_math",), ("--maxrregcount=32",), ("-Xptxas", "-O1")], ids=str)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_code_of_the_compiler_has_no_fault(file: Path, arch: str, options: tuple[str, ...]) -> None:
    # The record of latencies has the code of these kernels without such options.
    source = file.read_text("utf-8")
    first = re.findall(r"void (\w+)\(", source[source.index("__global__") :])[0]
    artifact = compile_cubin(program(source, first, arch, options=options))
    functions = parse(disassemble(artifact.code, file.name)).values()
    assert len(functions) >= source.count("__global__")
    for function in functions:
        assert [str(finding) for finding in check_function(function, arch) if finding.certain] == []


def test_a_measured_latency_is_not_longer_than_what_the_compiler_leaves() -> None:
    known = latencies("sm_90")
    assert len(known.measured) > 20
    assert all(cycles <= known.rows[row] for row, cycles in known.measured.items())
    assert not latencies("sm_80").measured
