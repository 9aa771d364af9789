"""The cache and headers on disk: what the compiler opened, or looked for in vain, decides whether code still fits."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab import launch
from gemmlab.core.errors import NoCompilerError
from gemmlab.core.program import Artifact, Program
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.toolchain import listing, nvrtc
from gemmlab.toolchain.build_cuda import build, ship
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

KERNEL = "\n__global__ void f(int* x) { x[0] = VALUE; }\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(place))
    return place


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder for sources, with a header `h.h` that says 41, and an empty folder `first`."""
    place = tmp_path / "work"
    (place / "first").mkdir(parents=True)
    says(place / "h.h", 41)
    return place


def says(path: Path, value: int, *, once: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{'#pragma once' if once else ''}\n#define VALUE {value}\n")


def asked(text: str, file: Path | None = None, **facts: Any) -> Program:
    if file is not None:
        file.write_text(text + KERNEL)
    return program(text + KERNEL, "f", path=str(file or ""), **facts)


def value(made_of: Artifact) -> int:
    """What the kernel stores."""
    (found,) = re.findall(r"\t(?:mov|st\.global)\.[ub]32\s+[^,]+, (\d+);", made_of.texts["ptx"])
    return int(found)


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise NoCompilerError("no CUDA compiler: install one")

    monkeypatch.setattr(nvrtc, "compiler", missing)


DIRECTIVES: dict[str, tuple[str, Callable[[Path], tuple[str, ...]]]] = {
    "plain": ('#include "h.h"', lambda w: (f"-I{w}",)),
    "angle": ("#include <h.h>", lambda w: (f"-I={w}",)),
    "from the root": ('#include "{work}/h.h"', lambda _w: ()),
    "from the root, upwards": ('#include "{work}/first/../h.h"', lambda _w: ()),
    "two options": ('#include "h.h"', lambda w: ("-I", str(w))),
    "long option": ('#include "h.h"', lambda w: (f"--include-path={w}",)),
    "long option apart": ('#include "h.h"', lambda w: ("--include-path", str(w))),
    "macro": ('#define HEADER "h.h"\n#include HEADER', lambda w: (f"-I{w}",)),
    "macro of an option": ("#include HEADER", lambda w: (f"-I{w}", '-DHEADER="h.h"')),
    "macro of two options": ("#include HEADER", lambda w: ("-D", "HEADER=<h.h>", f"-I{w}")),
    "continued": ('#inc\\\nlude \\\n "h.h"', lambda w: (f"-I{w}",)),
    "comment before": ('/* one */ /* two\n*/ #include "h.h"', lambda w: (f"-I{w}",)),
    "comment within": ('# /* a */ include /* b */ "h.h" // c', lambda w: (f"-I{w}",)),
    "digraph": ('%:include "h.h"', lambda w: (f"-I{w}",)),
    "pre-included": ("", lambda w: (f"-I{w}", "-include=h.h")),
    "pre-included apart": ("", lambda w: (f"-I{w}", "--pre-include", "h.h")),
    "next": ('#include_next "h.h"', lambda w: (f"-I{w}",)),
    "asked for": ('#if __has_include("h.h")\n#include "h.h"\n#else\n#define VALUE 0\n#endif', lambda w: (f"-I{w}",)),
    "nested": ('#include "first/outer.h"', lambda w: (f"-I{w}",)),
    "nested, from the root": ('#include "{work}/first/outer.h"', lambda _w: ()),
    "of a later standard": ('#include "h.h"', lambda w: ("-std=c++20", f"-I{w}")),
    "after a mark of another line": ('#line 7 "other.h"\n#include "h.h"', lambda w: (f"-I{w}",)),
}


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", DIRECTIVES)
def test_an_edited_header_is_compiled_anew(work: Path, made: list[str], form: str) -> None:
    text, options = DIRECTIVES[form]
    (work / "first" / "outer.h").write_text('#include "../h.h"\n')
    request = asked(text.format(work=work), options=options(work))
    before = [build(request), build(request)]
    assert [value(one) for one in before] == [41, 41]
    assert len(made) == 1, "it was not found again"
    says(work / "h.h", 43)
    assert [value(build(request)) for _ in range(2)] == [43, 43]
    assert len(made) == 2
    says(work / "h.h", 41)
    assert build(request) == before[0]
    assert len(made) == 2, "what was made of the first text still fits"
    assert str(work).encode() not in before[0].code


def test_trigraphs_are_no_directives(work: Path) -> None:
    """The compiler does not take them for such, so that they are not followed either."""
    assert value(build(asked('// ??/\n#include "h.h"', options=(f"-I{work}",)))) == 41


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["beside", "option", "nested", "of cuda", "stand-in", "asked for", "folder"])
def test_a_header_that_comes_to_lie_before_another_is_found(work: Path, made: list[str], form: str) -> None:
    text, file, options, before, new = {
        "beside": ('#include "h.h"', work / "first" / "k.cu", (f"-I{work}",), 41, "first/h.h"),
        "option": ('#include "h.h"', None, (f"-I{work / 'first'}", f"-I{work}"), 41, "first/h.h"),
        "nested": ('#include "second/outer.h"', None, (f"-I{work}",), 41, "second/h.h"),
        "of cuda": ("#include <cuda_fp16.h>\n#ifndef VALUE\n#define VALUE 41\n#endif", None, (f"-I{work}",), 41,
                    "cuda_fp16.h"),
        "stand-in": ("#include <cstdint>\n#ifndef VALUE\n#define VALUE 41\n#endif", None, (f"-I{work}",), 41,
                     "cstdint"),
        "asked for": ('#if __has_include("new.h")\n#define VALUE 43\n#else\n#define VALUE 41\n#endif', None,
                      (f"-I{work / 'first'}", f"-I{work}"), 41, "first/new.h"),
        "folder": ('#include "h.h"', None, (f"-I{work / 'not' / 'yet'}", f"-I{work}"), 41, "not/yet/h.h"),
    }[form]  # fmt: skip
    (work / "second").mkdir()
    (work / "second" / "outer.h").write_text('#include "h.h"\n')
    request = asked(text, file, options=options)
    assert [value(build(request)), value(build(request))] == [before, before]
    assert len(made) == 1
    says(work / new, 43)
    assert [value(build(request)), value(build(request))] == [43, 43]
    assert len(made) == 2
    (work / new).unlink()
    with suppress(OSError):
        (work / new).parent.parent.joinpath("yet").rmdir()
        (work / "not").rmdir()
    assert value(build(request)) == before
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_a_question_that_is_not_written_out_is_asked_each_time(work: Path, made: list[str]) -> None:
    request = asked('#define Q "new.h"\n#if __has_include(Q)\n#define VALUE 43\n#else\n#define VALUE 41\n#endif',
                    options=(f"-I{work}",))  # fmt: skip
    assert [value(build(request)), value(build(request))] == [41, 41]
    says(work / "new.h", 1)
    assert value(build(request)) == 43
    assert len(made) == 3


def test_one_name_may_stand_for_two_headers_in_two_folders(work: Path) -> None:
    for name, number in (("a", 1), ("b", 2)):
        (work / name).mkdir()
        (work / name / "all.h").write_text('#include "same.h"\n')
        (work / name / "same.h").write_text(f"#pragma once\n#define {name} {number}\n")
    request = asked('#include "a/all.h"\n#include "b/all.h"\n#define VALUE (10 * a + b)', work / "k.cu")
    assert value(build(request)) == 12


def test_a_header_of_two_names_is_one(work: Path) -> None:
    says(work / "h.h", 41, once=True)
    os.link(work / "h.h", work / "hard.h")
    (work / "soft.h").symlink_to("h.h")
    with (work / "h.h").open("a") as file:
        file.write("struct Once { int x; };\n")
    includes = ("h.h", "hard.h", "soft.h", "first/../h.h", str(work / "h.h"))
    request = asked("\n".join(f'#include "{name}"' for name in includes), work / "k.cu")
    assert value(build(request)) == 41


@pytest.mark.in_turns(20)
def test_where_the_copy_would_be_another_program_the_real_files_are_compiled(
    work: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder reached by a link: `..` leads elsewhere than in the copy."""
    says(work / "far" / "h.h", 47)
    (work / "far" / "deep").mkdir()
    (work / "near").symlink_to(work / "far" / "deep")
    request = asked('#include "near/../h.h"', work / "k.cu")
    assert [value(build(request)), value(build(request))] == [47, 47]
    assert len(made) == 1
    says(work / "far" / "h.h", 48)
    assert value(build(request)) == 48
    monkeypatch.setattr("gemmlab.toolchain.shadow.Shadow.originals", lambda *_args: ["something else"])
    says(work / "far" / "h.h", 49)
    assert [value(build(request)), value(build(request))] == [49, 49]
    assert len(made) == 3


@pytest.mark.in_turns(20)
def test_a_compiler_that_does_not_tell_what_it_opened_has_nothing_kept(
    work: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "opened", lambda *_args: None)
    request = asked('#include "h.h"', work / "k.cu")
    assert [value(build(request)), value(build(request))] == [41, 41]
    assert len(made) == 2


def test_line_information_names_the_headers_that_were_asked_with(work: Path, tmp_path: Path, made: list[str]) -> None:
    (work / "h.h").write_text("__device__ inline int twice(int x) {\n  return x + x;\n}\n#define VALUE twice(x[1])\n")
    shutil.copytree(work, tmp_path / "elsewhere")
    here, there = (build(asked('#include "h.h"', place / "k.cu")) for place in (work, tmp_path / "elsewhere"))
    assert here.code == there.code
    assert len(made) == 1
    assert f'"{work / "h.h"}"' in here.texts["ptx"]
    assert f'"{tmp_path / "elsewhere" / "h.h"}"' in there.texts["ptx"]
    assert str(work) not in there.texts["ptx"]


@pytest.mark.in_turns(20)
def test_without_a_compiler_code_of_an_edited_header_is_not_run(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked('#include "h.h"', work / "k.cu")
    ship(request, tmp_path / "package")
    no_compiler(monkeypatch)
    monkeypatch.setattr("gemmlab.toolchain.shipped_code.FOLDER", tmp_path / "package")
    for cache in (os.environ["GEMMLAB_CACHE_DIR"], str(tmp_path / "empty")):
        monkeypatch.setenv("GEMMLAB_CACHE_DIR", cache)
        says(work / "h.h", 41)
        assert build(request).texts["sass"]
        says(work / "h.h", 43)
        with pytest.raises(NoCompilerError, match="is not in"):
            build(request)


@pytest.mark.in_turns(20)
def test_a_launch_runs_what_the_header_says_now(work: Path) -> None:
    import numpy as np

    for expected in (41, 43):
        says(work / "h.h", expected)
        text = f'#include "{work / "h.h"}"' + KERNEL
        done = launch(text, "f", 1, 1, [np.zeros(1, np.int32)], device="emulated:sm_90")
        assert isinstance(done.outputs, list)
        assert done.outputs[0][0] == expected


@pytest.mark.in_turns(20)
def test_devices_see_the_same(work: Path, made: list[str]) -> None:
    device, request = EmulatedDevice("sm_80"), replace(asked('#include "h.h"', work / "k.cu"), target="sm_80")
    assert value(device.build(request)) == 41
    says(work / "h.h", 43)
    assert value(device.build(request)) == 43
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_cudas_headers_are_the_compilers_own_and_cost_one_compilation(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is compiled, not the real files again; what CUDA's headers include is not listed file by file."""
    kinds: list[str] = []
    for kind, really in [(kind, getattr(listing, kind)) for kind in ("preprocessing", "trace_option")]:

        def noted(folder: Path, kind: str = kind, really: Any = really) -> Any:
            kinds.append(kind)
            return really(folder)

        monkeypatch.setattr(listing, kind, noted)
    made = build(asked('#include <cuda_fp16.h>\n#include <cstdint>\n#include "h.h"', work / "k.cu"))
    # Twice the directives, without CUDA's headers and with them, and one compilation.
    assert (kinds.count("preprocessing"), kinds.count("trace_option")) == (2, 3)
    assert made.searched is not None
    assert {place for place, mark in made.searched.items() if mark} == {"0/h.h"}
    assert {"0/cuda_fp16.h", "0/cstdint"} <= set(made.searched)
