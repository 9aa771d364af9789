"""`gemmlab.launch` on the emulated device: any kernel, from text, file or cubin, arrays in and out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceError,
    GemmlabError,
    NoCompilerError,
    UsageError,
)
from gemmlab.launching.pointers import fits
from gemmlab.launching.source import plain
from gemmlab.toolchain import apart, nvdisasm

SOURCE = """
extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

template <int N> __global__ void widths(double* p, unsigned char small, long long large) {
    p[threadIdx.x] = N + small + large;
}

namespace mine { __global__ void mark(short* p) { p[threadIdx.x] = 7; } }

__global__ void dynamic(int* p) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
"""
N = 10


def run(kernel: str = "axpy", args: Any = None, **more: Any) -> Any:
    """A launch of one small block."""
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    given: dict[str, Any] = {"source": SOURCE, "grid": 1, "threads": 32, "device": "emulated"} | more
    return gemmlab.launch(
        given.pop("source"), kernel, given.pop("grid"), given.pop("threads"),
        (N, 2.0, x, y) if args is None else args, **given,
    )  # fmt: skip


def test_outputs_come_in_the_order_of_the_arrays_and_inputs_stay_as_they_were() -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    done = run(args=[N, np.float32(2), x, y])
    assert [output.tolist() for output in done.outputs] == [x.tolist(), (2 * x + 1).tolist()]
    assert (y == 1).all()
    assert done.device == "emulated:sm_90"
    assert done.hazards == ()
    assert done.counters.executed("FFMA") == 1
    assert done.counters.facts()["global_load_requests"] == 2
    assert done.artifact.entry == "axpy"


def test_arguments_by_name_give_outputs_by_name() -> None:
    done = run(args={"n": N, "a": 1.0, "x": np.ones(N, np.float32), "y": np.zeros(N, np.float32)})
    assert sorted(done.outputs) == ["x", "y"]
    assert done.outputs["y"].tolist() == [1.0] * N


def test_names_count_and_not_their_order() -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    done = run(args={"y": y, "x": x, "a": 2.0, "n": N})
    assert list(done.outputs) == ["y", "x"]
    assert done.outputs["y"].tolist() == (2 * x + 1).tolist()
    assert done.outputs["x"].tolist() == x.tolist()


def test_names_that_the_kernel_does_not_have_are_listed() -> None:
    x = np.ones(N, np.float32)
    with pytest.raises(
        UsageError, match=r"unknown m, z; missing n, y; the kernel is axpy\(int n, float a, float\* x, "
    ):
        run(args={"m": N, "a": 1.0, "x": x, "z": x})
    with pytest.raises(UsageError, match="by name: missing y;"):
        run(args={"n": N, "a": 1.0, "x": x})


def test_of_a_cubin_the_order_of_a_dictionary_counts() -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    done = run(source=run().artifact.code, args={"count": N, "factor": 2.0, "in": x, "out": y})
    assert done.outputs["out"].tolist() == (2 * x + 1).tolist()


def test_any_view_is_handed_over_in_c_order_and_keeps_its_shape() -> None:
    x = np.arange(2 * N, dtype=np.float32)[::-2].reshape(2, 5).T
    done = run(args=(N, 1.0, x, np.zeros((5, 2), np.float32)))
    assert done.outputs[1].shape == (5, 2)
    assert (done.outputs[1] == x).all()


def test_the_same_array_twice_is_the_same_memory() -> None:
    x = np.arange(N, dtype=np.float32)
    first, second = run(args=(N, 2.0, x, x)).outputs
    assert first is second
    assert first.tolist() == (3 * x).tolist()


def test_python_numbers_take_the_type_that_the_source_states() -> None:
    done = run("widths<5>", (np.zeros(32), 255, -1000))
    assert done.outputs[0].tolist() == [5.0 + 255 - 1000] * 32


def test_shared_memory_can_be_asked_for() -> None:
    assert run("dynamic", [np.zeros(32, np.int32)], smem_bytes=128).outputs[0].tolist() == list(range(31, -1, -1))
    hazards = run("dynamic", [np.zeros(32, np.int32)], smem_bytes=64).hazards
    assert any("out of bounds" in hazard.kind for hazard in hazards)


def test_a_file_is_a_source_and_its_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    assert run(source=path).outputs[1][1] == 3
    hazards = run(source=str(path), args=(20, 1.0, np.zeros(N, np.float32), np.zeros(20, np.float32))).hazards
    assert [hazard.kind for hazard in hazards] == ["out of bounds"]
    assert "mine.cu:4" in hazards[0].explain()


def test_what_a_launch_gave_is_shown_in_a_line() -> None:
    done = run()
    assert repr(done) == "<Launched axpy on emulated:sm_90; outputs 0: float32 (10,), 1: float32 (10,); hazards: 0>"
    x, y = np.zeros((2, 5), np.float32), np.zeros(5, np.float32)
    named = run(args={"n": N, "a": 1, "x": x, "y": y})
    assert repr(named).endswith("; outputs x: float32 (2, 5), y: float32 (5,); hazards: 1>")


RACES = """
__global__ void turn(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[threadIdx.x ^ (blockDim.x - 1)] + tile[threadIdx.x ^ 1];
}
"""


def test_a_race_names_array_lines_and_what_is_missing() -> None:
    # The lines race between warps and within a warp; nothing of another warp was written when the first one read.
    done = run("turn", [np.zeros(64, np.float32)], source=RACES, threads=64)
    first, *others = [hazard.explain() for hazard in done.hazards]
    assert first.startswith("race at turn.cu:")
    for part in (
        "`tile[threadIdx.x] = threadIdx.x;`", "`out[threadIdx.x] = tile[threadIdx.x ^ (blockDim.x - 1)] + tile[thread",
        "(array tile, kernel turn, ", "with no barrier between: __syncthreads() is missing",
    ):  # fmt: skip
        assert part in first
    assert not [text for text in others if text.startswith("race")], "each pair of lines once"
    # Within one warp a barrier of the warp would do.
    (alone,) = run("turn", [np.zeros(32, np.float32)], source=RACES, threads=32).hazards
    assert alone.message.endswith("with no warp-level synchronisation between: __syncwarp() is missing")


def test_a_ready_cubin_runs_without_a_source(tmp_path: Path) -> None:
    made = run("widths<5>", (np.zeros(32), 1, 2)).artifact
    (tmp_path / "mine.cubin").write_bytes(made.code)
    for source in (made.code, tmp_path / "mine.cubin", bytearray(made.code)):
        done = run("widths", (np.zeros(32), np.uint8(200), 1), source=source)
        assert done.outputs[0].tolist() == [206.0] * 32
        assert done.artifact.digest == made.digest
    assert run(made.entry, (np.zeros(32), 200, 1), source=made.code).outputs[0][0] == 206.0
    assert run("mine::mark", [np.zeros(32, np.int16)]).artifact.kernel == "mark"


def test_a_cubin_picks_the_emulator_of_its_architecture() -> None:
    made = run(device="emulated:sm_80").artifact
    done = run(source=made.code)
    assert (done.device, done.artifact.target) == ("emulated:sm_80", "sm_80")
    with pytest.raises(DeviceError, match="axpy is for sm_80"):
        run(source=made.code, device="emulated:sm_90")


STOPS = """
#include <cassert>
#include <cstdio>
__global__ void stops(int n, const int* x, int* y) {
    int i = threadIdx.x;
    assert(x[i] >= 0);
    if (n == 1) y = (int*)malloc(n);
    if (n == 2 && i == 5) __trap();
    y[i] = x[i];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize(
    ("n", "first", "said"),
    [
        (0, 0, ""),
        (0, -1, "stops.cu:6 (kernel stops, block (0, 0, 0), thread (0, 0, 0)): an assertion failed"),
        (1, 0, "stops.cu:7 (kernel stops, block (0, 0, 0), thread (0, 0, 0)): it calls malloc, which is not emulated"),
        (2, 0, "stops.cu:8 (kernel stops, block (0, 0, 0), thread (5, 0, 0)): the kernel stopped itself"),
    ],
)
def test_a_kernel_that_stops_itself_says_where_and_why(arch: str, n: int, first: int, said: str) -> None:
    x = np.arange(32, dtype=np.int32)
    x[0] = first
    hazards = run("stops", [n, x, np.zeros(32, np.int32)], source=STOPS, threads=32, device=f"emulated:{arch}").hazards
    assert [replace(hazard, text="").explain() for hazard in hazards] == ([f"trap at {said}"] if said else [])


def test_an_emulator_without_a_disassembler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'extern "C" __global__ void textless(int* p) { *p = 4; }'

    def none() -> Path:
        raise NoCompilerError("no nvdisasm: pip install it")

    monkeypatch.setattr(nvdisasm, "tool", none)
    monkeypatch.setattr(apart, "is_foreign", lambda _program: False)
    with pytest.raises(NoCompilerError, match="pip install"):
        run("textless", [np.zeros(1, np.int32)], source=source, threads=1)


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


def test_options_reach_the_compiler() -> None:
    source = 'extern "C" __global__ void f(int* p) { *p = VALUE; }'
    for value in (3, 4):
        done = run("f", [np.zeros(1, np.int32)], source=source, threads=1, options=[f"-DVALUE={value}"])
        assert done.outputs[0].tolist() == [value]


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


def test_the_same_array_is_looked_at_for_every_pointer_it_is_given_to() -> None:
    source = "__global__ void two(float* x, double* y) { y[0] = x[0]; }"
    x = np.zeros(2, np.float32)
    with pytest.raises(ArgumentTypeError, match=r"argument 2 \(double\* y\) has dtype float32"):
        run("two", [x, x], source=source)


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


@pytest.mark.parametrize(
    ("name", "bare"),
    [("tile", "tile"), ("tile<32, 4>", "tile"), ("mine::tile<2>", "tile"), ("_Z4tileILi32EEvPf", "tile"),
     ("_ZN4mine4markEPs", "mark"), ("_Zebra", "_Zebra")],
)  # fmt: skip
def test_bare_names(name: str, bare: str) -> None:
    assert plain(name) == bare
