"""Launches that `gemmlab.launch` refuses: arguments, names and extents that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    GemmlabError,
    UsageError,
)
from gemmlab.launching.pointers import fits
from support.small_launch import SOURCE, N, run


def test_names_that_the_kernel_does_not_have_are_listed() -> None:
    x = np.ones(N, np.float32)
    with pytest.raises(
        UsageError, match=r"unknown m, z; missing n, y; the kernel is axpy\(int n, float a, float\* x, "
    ):
        run(args={"m": N, "a": 1.0, "x": x, "z": x})
    with pytest.raises(UsageError, match="by name: missing y;"):
        run(args={"n": N, "a": 1.0, "x": x})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"source": SOURCE + "// \ud800"}, "source is no text: character [0-9]+, .*ud800.* is half a surrogate pair"),
        ({"kernel": "axpy\udfff"}, "kernel is no text: character 5"),
        ({"options": ["-DN=\udc80"]}, "an option is no text: character 5"),
        ({"source": "\ud800.cu"}, "cannot read"),
        ({"source": "a\0.cu"}, "cannot read .*null byte"),
        ({"kernel": 3}, "kernel is a int, not a str"),
        ({"options": "-DN=1"}, "options is a str, not a list; pass "),
        ({"grid": 10**5000}, r"grid is a int of 16,610 bits; it must be at least 0 and less than 2\^31"),
        ({"args": (10**5000, 2.0, None, None)}, "argument 1 .* is a int of 16,610 bits, which int32 cannot hold"),
        ({"args": (N, 10**5000, None, None)}, "argument 2 .* is a int of 16,610 bits, which float32 cannot hold"),
        ({"args": (N, 1e39, None, None)}, r"argument 2 .* is 1e\+39, which float32 cannot hold"),
    ],
)
def test_what_is_no_text_or_no_number_here_is_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(**more)


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        ((N, 2.0, 0), UsageError, r"axpy takes 4 arguments \(of 4, 4, 8, 8 bytes\); 3 were given"),
        ((10.0, 2.0, None, None), ArgumentTypeError, r"argument 1 \(int n\) is 10.0; the kernel takes int"),
        ((2**31, 2.0, None, None), UsageError, r"argument 1 \(int n\) is 2147483648, which int32 cannot hold"),
        ((N, np.int32(2), None, None), ArgumentTypeError, r"argument 2 \(float a\) is int32; the kernel takes float"),
        ((N, np.float64(2), None, None), ArgumentTypeError, "is float64 of 8 bytes; the kernel takes 4"),
        ((N, "2", None, None), ArgumentTypeError, r"argument 2 \(float a\) is a str"),
        ((N, 2.0, 3, None), ArgumentTypeError, r"argument 3 \(float\* x\) is a int; a pointer takes an array or None"),
        ((np.zeros(N), 2.0, None, None), ArgumentTypeError, r"argument 1 \(int n\) is an array"),
        ((N, None, None, None), ArgumentTypeError, r"argument 2 \(float a\) is None"),
        ((N, 2.0, np.zeros(N, ">f4"), None), ArgumentTypeError, r"argument 3 \(float\* x\) has dtype >f4"),
        ((N, 2.0, np.array([{}]), None), ArgumentTypeError, r"has dtype \|O"),
        (
            (N, 2.0, np.zeros(N), None),
            ArgumentTypeError,
            r"argument 3 \(float\* x\) has dtype float64; the kernel takes float\*",
        ),
        ((N, 2.0, None, np.arange(N)), ArgumentTypeError, r"argument 4 \(float\* y\) has dtype int64"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args: Any, error: type[GemmlabError], said: str) -> None:
    with pytest.raises(error, match=said):
        run(args=args)


@pytest.mark.parametrize(
    ("pointer", "taken", "refused"),
    [
        ("float*", "f4 c8", "f8 f2 i4 i8 u1"),
        ("float4*", "f4 c8", "f8 i4"),
        ("double2*", "f8 c16", "f4 i8"),
        ("int*", "i4 u4", "i8 i2 f4 ?"),
        ("int4*", "i4 u4", "i8 f4"),
        ("unsigned char*", "u1 i1 ? S1", "i4 f4"),
        ("char*", "u1 i1 S5", "i8"),
        ("long long*", "i8 u8 M8[s]", "i4 f8"),
        ("size_t*", "i8 u8", "u4"),
        ("half*", "f2 u2", "f4 i4 u1"),
        ("__half2*", "f2 u2", "f4"),
        ("__nv_bfloat16*", "f2 u2 V2", "f4"),
        ("void*", "f8 i1 V3", ""),
        ("Particle*", "f8 f4 i2", ""),
        ("float*", "V4", ""),
        ("T*", "f8 i1", ""),
        ("float**", "u8 f4", ""),
    ],
)
def test_what_a_pointer_takes(pointer: str, taken: str, refused: str) -> None:
    assert [name for name in taken.split() if not fits(pointer, np.dtype(name))] == []
    assert [name for name in refused.split() if fits(pointer, np.dtype(name))] == []


@pytest.mark.in_turns(20)
def test_the_same_array_is_looked_at_for_every_pointer_it_is_given_to() -> None:
    source = "__global__ void two(float* x, double* y) { y[0] = x[0]; }"
    x = np.zeros(2, np.float32)
    with pytest.raises(ArgumentTypeError, match=r"argument 2 \(double\* y\) has dtype float32"):
        run("two", [x, x], source=source)


@pytest.mark.in_turns(20)
def test_of_a_cubin_only_sizes_are_known() -> None:
    made = run("widths<5>", (np.zeros(32), 1, 2)).artifact
    with pytest.raises(UsageError, match="widths: argument 2 is 256, which int8 cannot hold"):
        run("widths", (np.zeros(32), 256, 1), source=made.code)
    with pytest.raises(ArgumentTypeError, match="argument 2 is a float; for a parameter of 1 bytes pass a NumPy"):
        run("widths", (np.zeros(32), 1.0, 1), source=made.code)
    with pytest.raises(UsageError, match=r"no kernel is named 'none'; there are .*_Z6widthsILi5EEvPdhx \(widths\)"):
        run("none", source=made.code)
    with pytest.raises(UsageError, match="is machine code for sm_90"):
        run("widths", (np.zeros(32), 1, 1), source=made.code, options=["-DX"])


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"kernel": "nothing"}, CompileError, 'identifier "nothing" is undefined'),
        (
            {"kernel": "nothing"},
            CompileError,
            "no kernel named 'nothing' in the source; there are axpy, widths, mine::mark, dynamic",
        ),
        ({"kernel": "widths"}, CompileError, 'widths is a template; name an instance: "widths<32>"'),
        ({"kernel": "mark"}, CompileError, "'mark' is in a namespace; name it with that: mine::mark"),
        ({"grid": (1, 2, 3, 4)}, UsageError, "grid has 4 extents"),
        ({"grid": 1.5}, ArgumentTypeError, "grid is 1.5, not whole numbers"),
        ({"grid": 0}, UsageError, "axpy: grid"),
        ({"threads": -1}, UsageError, "threads is -1"),
        ({"threads": 1025}, UsageError, "1025"),
        ({"smem_bytes": 10**6}, UsageError, "shared memory"),
        ({"source": "missing.cu"}, UsageError, r"cannot read missing\.cu"),
        ({"source": 3}, ArgumentTypeError, "source is a int"),
        ({"source": b"\x7fELF"}, UsageError, "the cubin"),
        ({"device": "cpu"}, UsageError, "run on cuda and emulated devices, not on cpu"),
        (
            {"device": "emulated:sm_90", "arch": "sm_80"},
            UsageError,
            "emulated:sm_90 runs code for sm_90, not for sm_80",
        ),
    ],
)
def test_launches_that_make_no_sense_are_refused(change: dict[str, Any], error: type[GemmlabError], said: str) -> None:
    with pytest.raises(error, match=said):
        run(**change)


def test_an_array_on_a_gpu_is_refused_by_the_emulator() -> None:
    class OnGpu:
        __cuda_array_interface__ = {"shape": (N,), "typestr": "<f4", "data": (4096, False), "version": 3}  # noqa: RUF012

    with pytest.raises(ArgumentTypeError, match=r"argument 3 \(float\* x\) lies on a GPU; the kernel runs on emulated"):
        run(args=(N, 2.0, OnGpu(), None))
