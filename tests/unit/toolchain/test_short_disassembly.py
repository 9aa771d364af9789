"""The disassembly in a wheel: restored to the last character, and short."""

from __future__ import annotations

import pytest

from gemmlab.core.program import Artifact
from gemmlab.toolchain.build_cuda import build
from gemmlab.toolchain.short_disassembly import restored, shortened
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

ONE = """
template <int T> __global__ void scale(float* x) {
  for (int i = 0; i < T; ++i)
    if (x[threadIdx.x + i] > i) x[threadIdx.x] *= T + i;
}
"""
TWO = "__device__ __noinline__ float twice(float x) { return x + x * x; }\n" + ONE.replace("*= T", "+= twice(x[i]) + T")


@pytest.fixture(scope="module", params=[(ONE, "sm_80"), (ONE, "sm_90"), (TWO, "sm_90")], ids=["80", "90", "two"])
def artifact(request: pytest.FixtureRequest) -> Artifact:
    source, arch = request.param
    return build(program(source, "scale<64>", arch))


@pytest.mark.in_turns(20)
def test_the_text_comes_back_exactly(artifact: Artifact) -> None:
    text = artifact.texts["sass"]
    assert restored(shortened(text, artifact.code, "scale"), artifact.code, "scale") == text


@pytest.mark.in_turns(20)
def test_only_the_first_instruction_of_a_column_has_its_encoding(artifact: Artifact) -> None:
    text = artifact.texts["sass"]
    short = shortened(text, artifact.code, "scale")
    functions = text.count("\t.section\t.text.")
    assert text.count("/* 0x") > 100 * functions
    assert short.count("/* 0x") <= 2 * functions
    assert len(short) < 0.5 * len(text)


def test_instructions_in_another_layout_stay_as_they_are(artifact: Artifact) -> None:
    lines = artifact.texts["sass"].split("\n")
    (place, *_) = (at for at, line in enumerate(lines) if "/*0040*/" in line)
    lines[place] = lines[place].replace(" /* 0x", "   /* 0x")
    lines[place + 4] = lines[place + 4].upper()
    text = "\n".join(lines)
    short = shortened(text, artifact.code, "scale")
    assert lines[place] in short.split("\n")
    assert restored(short, artifact.code, "scale") == text


def test_the_text_of_other_code_stays_as_it_is(artifact: Artifact) -> None:
    text = artifact.texts["sass"].replace("/* 0x0", "/* 0x1")
    assert shortened(text, artifact.code, "scale") == text
