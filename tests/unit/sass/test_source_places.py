"""Callers of the lines of hazards: those of inline PTX have the text of the line that calls it."""

from __future__ import annotations

from dataclasses import replace

from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact
from gemmlab.sass.source_places import with_call_sites

TEXTS = {
    "/own/mine.cu": "\nfirst();\nsecond();\n",
    "/own/wait.cuh": 'void wait() {\nasm volatile("wait;");\ndone();\n}',
}
PTX = """.visible .entry f()
{
\t.loc\t1 2 0
\t.loc\t2 2 3, function_name $L__info_string0, inlined_at 1 2 0
\twait;
\t.loc\t1 3 0
\t.loc\t2 2 3, function_name $L__info_string0, inlined_at 1 3 0
\twait;
}
.file 1 "/own/mine.cu"
.file 2 "/own/wait.cuh"
"""
ARTIFACT = Artifact("f", "cubin", "sm_90a", "f", b"", "", "", texts={"ptx": PTX})
HAZARD = Hazard(
    "wgmma", "f", (0, 0, 0), (0, 0, 0), None, "/own/wait.cuh", 2, other_line=2, text='asm volatile("wait;");',
    other_text='asm volatile("wait;");', called_from="mine.cu:3", other_called_from="mine.cu:2",
)  # fmt: skip


def test_a_known_caller_of_inline_ptx_has_its_text() -> None:
    (found,) = with_call_sites([HAZARD], ARTIFACT, TEXTS)
    assert (found.called_from, found.called_text) == ("mine.cu:3", "second();")
    assert (found.other_called_from, found.other_called_text) == ("mine.cu:2", "first();")
    assert found.place == "mine.cu:3 (in wait.cuh:2)"


def test_a_line_that_is_no_inline_ptx_has_no_text_of_its_caller() -> None:
    (found,) = with_call_sites([replace(HAZARD, text="done();")], ARTIFACT, TEXTS)
    assert (found.called_from, found.called_text) == ("mine.cu:3", "")


def test_what_a_hazard_has_stays() -> None:
    known = replace(HAZARD, called_text="second();", other_called_text="first();")
    assert tuple(with_call_sites([known], ARTIFACT, TEXTS)) == (known,)
    assert tuple(with_call_sites([known], replace(ARTIFACT, texts={}), {})) == (known,)
