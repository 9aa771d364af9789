"""Source places of PTX: callers that were named before, nested ones, and the end of a function."""

from __future__ import annotations

from gemmlab.toolchain.ptx_places import ptx_places

PTX = """.visible .entry f()
{
\t.loc\t1 8 0
\tmov.u32 %r1, 0;
\t.loc\t1 10 5
\t.loc\t2 27 3, function_name $L__info_string0, inlined_at 1 10 5
\t.loc\t2 15 9, function_name $L__info_string1, inlined_at 2 27 3
\tadd.s32 %r2, %r1, 1;
\t.loc\t1 11 5
\t.loc\t2 15 9, function_name $L__info_string1, inlined_at 1 11 5
\tadd.s32 %r3, %r1, 1;
}
.file 1 "/own/mine.cu"
.file 2 "/own/helper.cuh"
"""
MINE, HELPER = "/own/mine.cu", "/own/helper.cuh"


def test_each_line_has_its_chain() -> None:
    found = ptx_places(PTX)
    assert found[0] == ()
    assert found[3] == ((MINE, 8),)
    assert found[7] == ((HELPER, 15), (HELPER, 27), (MINE, 10))
    assert found[10] == ((HELPER, 15), (MINE, 11))
    assert found[11] == ()
    assert len(found) == len(PTX.splitlines())


def test_text_without_directives_has_no_places() -> None:
    assert ptx_places("") == ()
    assert ptx_places("ret;\n") == ((),)


def test_a_copy_of_a_loop_whose_calls_are_named_behind_it_has_its_own_caller() -> None:
    inlined = "function_name $L__info_string0, inlined_at"
    ptx = "\n".join([
        f"\t.loc\t2 50 5, {inlined} 1 47 13", f"\t.loc\t2 39 5, {inlined} 2 50 5", "first;",
        f"\t.loc\t2 50 5, {inlined} 1 52 13", f"\t.loc\t2 39 5, {inlined} 2 50 5", "second;",
        "\t.loc\t1 0 9", f"\t.loc\t2 39 5, {inlined} 2 50 5", "first again;", f"\t.loc\t2 41 5, {inlined} 2 50 5",
        f"\t.loc\t2 50 5, {inlined} 1 47 13", "\t.loc\t1 0 9", f"\t.loc\t2 39 5, {inlined} 2 50 5", "second again;",
        f"\t.loc\t2 50 5, {inlined} 1 52 13", '.file 1 "a.cu"', '.file 2 "b.cuh"',
    ])  # fmt: skip
    callers = [place[-1][1] for line, place in zip(ptx.splitlines(), ptx_places(ptx), strict=True) if ";" in line]
    assert callers == [47, 52, 47, 52]
