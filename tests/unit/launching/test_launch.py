"""`gemmlab.launch` on the emulated device: any kernel, from text, file or cubin, arrays in and out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.errors import (
    DeviceError,
    NoCompilerError,
)
from gemmlab.launching.source import plain
from gemmlab.toolchain import apart, nvdisasm
from support.small_launch import SOURCE, N, run


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_arguments_by_name_give_outputs_by_name() -> None:
    done = run(args={"n": N, "a": 1.0, "x": np.ones(N, np.float32), "y": np.zeros(N, np.float32)})
    assert sorted(done.outputs) == ["x", "y"]
    assert done.outputs["y"].tolist() == [1.0] * N


@pytest.mark.in_turns(20)
def test_names_count_and_not_their_order() -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    done = run(args={"y": y, "x": x, "a": 2.0, "n": N})
    assert list(done.outputs) == ["y", "x"]
    assert done.outputs["y"].tolist() == (2 * x + 1).tolist()
    assert done.outputs["x"].tolist() == x.tolist()


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_python_numbers_take_the_type_that_the_source_states() -> None:
    done = run("widths<5>", (np.zeros(32), 255, -1000))
    assert done.outputs[0].tolist() == [5.0 + 255 - 1000] * 32


@pytest.mark.in_turns(20)
def test_shared_memory_can_be_asked_for() -> None:
    assert run("dynamic", [np.zeros(32, np.int32)], smem_bytes=128).outputs[0].tolist() == list(range(31, -1, -1))
    hazards = run("dynamic", [np.zeros(32, np.int32)], smem_bytes=64).hazards
    assert any("out of bounds" in hazard.kind for hazard in hazards)


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_a_race_names_array_lines_and_what_is_missing() -> None:
    # The lines race between warps and within a warp; nothing of another warp was written when the first one read.
    done = run("turn", [np.zeros(64, np.float32)], source=RACES, threads=64)
    first, *others = [hazard.explain() for hazard in done.hazards]
    assert first.startswith("race at turn.cu:")
    for part in (
        "`tile[threadIdx.x] = threadIdx.x;`", "`out[threadIdx.x] = tile[threadIdx.x ^ (blockDim.x - 1)] + tile[thread",
        "(array tile, kernel turn, ", "with no barrier between; put __syncthreads() between line 4 and line 5",
    ):  # fmt: skip
        assert part in first
    assert not [text for text in others if text.startswith("race")], "each pair of lines once"
    # Within one warp a barrier of the warp would do.
    (alone,) = run("turn", [np.zeros(32, np.float32)], source=RACES, threads=32).hazards
    assert alone.message.endswith(
        "with no warp-level synchronisation between; put __syncwarp() between line 4 and line 5"
    )


@pytest.mark.in_turns(20)
def test_a_ready_cubin_runs_without_a_source(tmp_path: Path) -> None:
    made = run("widths<5>", (np.zeros(32), 1, 2)).artifact
    (tmp_path / "mine.cubin").write_bytes(made.code)
    for source in (made.code, tmp_path / "mine.cubin", bytearray(made.code)):
        done = run("widths", (np.zeros(32), np.uint8(200), 1), source=source)
        assert done.outputs[0].tolist() == [206.0] * 32
        assert done.artifact.digest == made.digest
    assert run(made.entry, (np.zeros(32), 200, 1), source=made.code).outputs[0][0] == 206.0
    assert run("mine::mark", [np.zeros(32, np.int16)]).artifact.kernel == "mark"


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_options_reach_the_compiler() -> None:
    source = 'extern "C" __global__ void f(int* p) { *p = VALUE; }'
    for value in (3, 4):
        done = run("f", [np.zeros(1, np.int32)], source=source, threads=1, options=[f"-DVALUE={value}"])
        assert done.outputs[0].tolist() == [value]


@pytest.mark.parametrize(
    ("name", "bare"),
    [("tile", "tile"), ("tile<32, 4>", "tile"), ("mine::tile<2>", "tile"), ("_Z4tileILi32EEvPf", "tile"),
     ("_ZN4mine4markEPs", "mark"), ("_Zebra", "_Zebra")],
)  # fmt: skip
def test_bare_names(name: str, bare: str) -> None:
    assert plain(name) == bare
