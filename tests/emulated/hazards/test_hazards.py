"""Every class of hazard: a kernel that commits it is reported with its lines, and its twin is not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gemmlab.devices.emulated", reason="there is no emulated device yet")
pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab import launch
from gemmlab.core.counters import ASYNC_COPY
from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import Hazard
from gemmlab.devices.emulated import ARCHITECTURES, EmulatedDevice
from support.cuda_calls import CudaFile

HERE = Path(__file__).parent
f32, i32, u32 = np.float32, np.int32, np.uint32
ones = np.ones(64, f32)


@dataclass(frozen=True)
class Pair:
    """A committing kernel, its twin, and what is to be said of the first."""

    file: str
    bad: str
    good: str
    kind: str
    args: tuple[Any, ...]
    threads: int = 64
    grid: int = 1
    smem_bytes: int = 0
    follows: frozenset[str] = frozenset()
    """Kinds that may be reported as well: a refused write leaves its place unwritten."""
    races: bool = False
    """Whether races in global memory are looked for."""
    twin: tuple[Any, ...] = ()
    """Arguments of the twin, where they are others."""

    def __str__(self) -> str:
        return f"{self.file}:{self.bad}"


def fresh(count: int, dtype: type[np.generic] = f32) -> np.ndarray[Any, Any]:
    return np.zeros(count, dtype)


def pair(file: str, stem: str, kind: str, *args: Any, good: str = "", **launch: Any) -> Pair:
    return Pair(file, f"{stem}_bad", good or f"{stem}_good", kind, args, **launch)


SCORES = np.random.default_rng(3).permutation(90).astype(f32)
PLACES = np.random.default_rng(4).uniform(0, 20, 90).astype(f32)
STUCK = frozenset({"deadlock"})
"""Also said where lanes that are missing wait for those that wait for them."""
PAIRS = [
    pair("bounds", "global_read", "out of bounds", np.ones(50, f32), fresh(50), i32(50)),
    pair("bounds", "global_write", "out of bounds", fresh(64), i32(63)),
    pair("bounds", "vector_read", "out of bounds", np.ones(126, f32), fresh(64), i32(126)),
    pair("bounds", "shared_write", "out of bounds", fresh(64), i32(1)),
    pair("bounds", "shared_read", "out of bounds", fresh(64), i32(8), smem_bytes=256),
    pair("misaligned", "global", "misaligned", np.ones(200, f32), fresh(32), i32(1), threads=32),
    pair("misaligned", "shared", "misaligned", fresh(32), i32(1), threads=32, follows=frozenset({"unwritten"})),
    pair("unwritten", "shared", "unwritten", fresh(64), i32(50)),
    pair("unwritten", "local", "unwritten", fresh(64), i32(50)),
    pair("shared_race", "read_after_write", "race", ones, fresh(64)),
    pair("shared_race", "write_after_read", "race", np.ones(256, f32), fresh(64), i32(4)),
    pair("shared_race", "write_after_write", "race", fresh(64)),
    pair("shared_race", "one_value", "race", np.arange(1, 65.0), fresh(64, np.float64)),
    pair("shared_race", "one_flag", "race", np.arange(1, 65.0), fresh(64, np.float64)),
    pair("shared_race", "counter", "race", fresh(64, i32)),
    pair("warp_race", "last_warp", "race", ones, fresh(1), threads=32),
    pair("warp_race", "neighbour", "race", ones, fresh(32), threads=32),
    pair("warp_race", "one_word", "race", np.arange(32, dtype=f32), fresh(32), threads=32),
    pair("warp_race", "one_double", "race", np.arange(32, dtype=f32), fresh(32), threads=32),
    pair("warp_race", "one_byte", "race", np.arange(32, dtype=f32), fresh(32), threads=32),
    pair("barrier", "half_warp", "barrier", ones, fresh(64)),
    pair("barrier", "early_return", "barrier", np.ones(100, f32), fresh(100), i32(100), threads=128),
    pair("barrier", "number", "barrier", fresh(64), i32(15)),
    pair("constant", "past_the_end", "out of bounds", fresh(16), i32(4), threads=16),
    pair("constant", "before_the_start", "out of bounds", fresh(16), i32(8), threads=16),
    pair("warp_sync", "some_lanes", "warp sync", ones, fresh(64), i32(16), threads=32, follows=STUCK),
    pair("warp_sync", "ballot", "warp sync", ones, fresh(64, u32), i32(16), threads=32, follows=STUCK),
    pair("warp_sync", "returned", "warp sync", ones, fresh(64), i32(16), threads=32),
    pair("warp_sync", "mask", "warp sync", ones, fresh(64), u32(0x55555555), threads=32),
    pair("async_copy", "no_wait", "async copy", ones, fresh(32), threads=32),
    pair("async_copy", "wrong_group", "async copy", ones, fresh(32), threads=32),
    pair("async_copy", "one_of_two", "async copy", ones, fresh(32), i32(0), threads=32),
    pair("async_copy", "no_barrier", "race", ones, fresh(64)),
    pair("async_copy", "old_value", "race", ones, fresh(64)),
    pair("async_copy", "past_the_end", "out of bounds", np.ones(62, f32), fresh(32), i32(62), threads=32),
    pair("global_race", "nms", "race", SCORES, PLACES, np.ones(90, np.bool_), i32(90), threads=30, grid=3, races=True),
    pair("global_race", "neighbour", "race", np.ones(90, f32), i32(90), threads=32, grid=3, races=True),
    pair("global_race", "sum", "race", np.ones(97, f32), i32(96), threads=32, grid=3, races=True),
    pair("global_race", "clear", "race", np.full(4, 7, i32), i32(3), threads=32, grid=3, races=True,
         twin=(fresh(4, i32), i32(3))),
    pair("global_race", "warps", "race", fresh(128), i32(3), races=True),
    pair("global_race", "last_block", "race", fresh(128), fresh(1, u32), grid=5, races=True),
    pair("global_race", "chain", "race", fresh(8), fresh(8, i32), grid=5, races=True),
    pair("deadlock", "flag", "deadlock", fresh(1, i32), fresh(64, i32)),
    pair("deadlock", "locks", "deadlock", fresh(2, i32), fresh(1, i32)),
    pair("deadlock", "named_barrier", "deadlock", fresh(64, i32)),
    pair("endless", "counter", "endless loop", np.ones(6000, f32), fresh(64), i32(6000)),
    pair("endless", "circle", "endless loop", fresh(64), i32(1000)),
    pair("endless", "lane", "endless loop", fresh(64, i32), i32(40_000)),
    pair("residency", "later_block", "residency", fresh(3, i32), fresh(3, i32), good="earlier_block_good", grid=3),
    pair(
        "residency", "grid_barrier", "residency", fresh(1, i32), fresh(96, i32), good="one_block_good", grid=3,
        threads=32,
    ),
]  # fmt: skip


def run(pair: Pair, kernel: str, arch: str) -> tuple[Hazard, ...]:
    device = EmulatedDevice(arch)
    args = pair.twin if pair.twin and kernel == pair.good else pair.args
    ran = launch(
        HERE / f"{pair.file}.cu", kernel, pair.grid, pair.threads, args, device=device, smem_bytes=pair.smem_bytes,
        races=pair.races,
    )  # fmt: skip
    assert ran.hazards is not None
    return ran.hazards


def marked(pair: Pair, mark: str) -> set[int]:
    """Lines of the committing kernel with a mark."""
    lines = (HERE / f"{pair.file}.cu").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if f" {pair.bad}(" in line)
    end = next(number for number, line in enumerate(lines) if number > start and line == "}")
    return {number + 1 for number in range(start, end) if f"// {mark}" in lines[number]}


@pytest.mark.in_turns(20)
@pytest.mark.sampled(5)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_what_is_committed_is_reported_with_its_lines(pair: Pair, arch: str) -> None:
    hazards = run(pair, pair.bad, arch)
    told = "\n".join(hazard.explain() for hazard in hazards)
    of_kind = [hazard for hazard in hazards if hazard.kind == pair.kind]
    assert of_kind, told
    assert {hazard.kind for hazard in hazards} <= {pair.kind} | pair.follows, told
    assert of_kind[0].kernel == pair.bad
    assert Path(of_kind[0].file).name == f"{pair.file}.cu"
    lines = {line for hazard in of_kind for line in (hazard.line, hazard.other_line) if line}
    here, other = marked(pair, "HERE"), marked(pair, "OTHER")
    assert here <= lines, told
    if other:
        assert lines == here | other, told


@pytest.mark.sampled(5)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_twin_is_clean(pair: Pair, arch: str) -> None:
    hazards = run(pair, pair.good, arch)
    assert not hazards, "\n".join(hazard.explain() for hazard in hazards)


@pytest.mark.in_turns(20)
def test_a_launch_that_runs_on_and_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    left = np.array([1_000_000], np.int32)
    monkeypatch.setenv("GEMMLAB_EMULATOR_PATIENCE", "100000")
    (hazard,) = launch(HERE / "endless.cu", "countdown", 1, 1, [left], device=EmulatedDevice("sm_90")).hazards or ()
    assert (hazard.kind, "GEMMLAB_EMULATOR_PATIENCE allows more" in hazard.message) == ("unfinished", True)
    monkeypatch.setenv("GEMMLAB_EMULATOR_PATIENCE", "soon")
    with pytest.raises(UsageError, match="GEMMLAB_EMULATOR_PATIENCE=soon: a number"):
        launch(HERE / "endless.cu", "countdown", 1, 1, [left], device=EmulatedDevice("sm_90"))
    monkeypatch.delenv("GEMMLAB_EMULATOR_PATIENCE")
    ran = CudaFile(EmulatedDevice("sm_90"), HERE / "endless.cu").run("countdown", 1, 1, (left,))
    assert (ran.hazards, ran.outputs[0].tolist()) == ((), [0])


@pytest.mark.in_turns(20)
def test_a_report_says_who_and_where() -> None:
    (hazard,) = run(PAIRS[0], PAIRS[0].bad, "sm_90")
    assert (hazard.block, hazard.thread, hazard.count) == ((0, 0, 0), (50, 0, 0), 1)
    assert "global memory" in hazard.message
    assert "200" in hazard.message


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("writer", [0, 1, 30, 31])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_writer_among_the_readers_of_a_word_races_with_another_thread(arch: str, writer: int) -> None:
    device = EmulatedDevice(arch)
    args = [np.array([writer], np.int32), fresh(32, i32)]
    (hazard,) = launch(HERE / "warp_race.cu", "broadcast", 1, 32, args, device=device).hazards or ()
    assert (hazard.kind, hazard.thread) == ("race", (writer, 0, 0))
    assert f"by thread ({30 if writer == 31 else 31}, 0, 0) (LDS" in hazard.message


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_global_memory_that_nothing_wrote(arch: str) -> None:
    file, never = CudaFile(EmulatedDevice(arch), HERE / "unwritten.cu"), (None, 256)
    (hazard,) = file.run("global_bad", 1, 64, (never, fresh(64), i32(10))).hazards
    here = marked(pair("unwritten", "global", "unwritten"), "HERE")
    assert (hazard.kind, {hazard.line}, hazard.count) == ("unwritten", here, 10)
    assert not file.run("global_good", 1, 64, (never, fresh(64), i32(10))).hazards


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_half_of_a_spilled_pair_may_be_unwritten_but_not_be_used(arch: str) -> None:
    file = CudaFile(EmulatedDevice(arch), HERE / "unwritten.cu")
    for use_both in (False, True):
        ran = file.run("half_of_a_pair", 1, 1, (np.full(1, 5, f32), i32(use_both)))
        assert not ran.hazards
        assert np.isnan(ran.outputs[0][0]) if use_both else ran.outputs[0][0] == 5


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bytes_that_nothing_wrote_beside_some_that_were(arch: str) -> None:
    file = CudaFile(EmulatedDevice(arch), HERE / "unwritten.cu")
    for use_all in (0, 1):
        ran = file.run("half_of_a_word", 1, 1, (np.full(1, 7, np.uint32), i32(use_all)))
        assert not ran.hazards
        assert ran.outputs[0].tolist() == [0xDEDE0007 if use_all else 7]
    ran = file.run("padded", 1, 32, (fresh(32), i32(9)))
    assert not ran.hazards
    assert ran.outputs[0].tolist() == [9.5] * 32


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_copy_of_less_than_its_width_fills_with_zeros(arch: str) -> None:
    ran = CudaFile(EmulatedDevice(arch), HERE / "async_copy.cu").run(
        "past_the_end_good", 1, 32, (np.ones(62, f32), fresh(32), i32(62))
    )
    assert ran.outputs[1].tolist() == [4.0] * 15 + [2.0] + [0.0] * 16
    assert ran.counters is not None
    (copy,) = ran.counters.of_kind(ASYNC_COPY)
    assert (copy.sectors, copy.sectors_distinct) == (8, 8)


@pytest.mark.in_turns(20)
def test_a_grid_that_is_not_made_of_whole_clusters_is_not_launched() -> None:
    device = EmulatedDevice("sm_90")
    refused = launch(HERE / "cluster.cu", "fours_bad", 6, 32, [fresh(192)], device=device)
    (hazard,) = refused.hazards or ()
    told = (hazard.kind, hazard.line, hazard.kernel)
    assert told == ("cluster", *marked(pair("cluster", "fours", "cluster"), "HERE"), "fours_bad")
    assert "a grid of (6, 1, 1) blocks is not made of clusters of (4, 1, 1)" in hazard.message
    assert isinstance(refused.outputs, list)
    assert not refused.outputs[0].any()
    assert launch(HERE / "cluster.cu", "fours_good", 6, 32, [fresh(192)], device=device).hazards == ()
    assert launch(HERE / "cluster.cu", "fours_bad", 8, 32, [fresh(256)], device=device).hazards == ()


@pytest.mark.in_turns(20)
def test_an_endless_loop_in_a_cluster_is_told_where_it_is_and_not_where_others_wait() -> None:
    (hazard,) = (
        launch(HERE / "cluster.cu", "second_bad", 2, 64, [fresh(64), u32(2)], device="emulated:sm_90").hazards or ()
    )
    told = (hazard.kind, hazard.line, hazard.block, hazard.thread)
    assert told == ("endless loop", *marked(pair("cluster", "second", ""), "CIRCLE"), (1, 0, 0), (32, 0, 0))


@pytest.mark.slow
def test_words_of_barriers_constants_and_warps() -> None:
    told = {}
    for name in ("number", "past_the_end", "before_the_start", "some_lanes", "returned", "mask"):
        case = next(each for each in PAIRS if each.bad == f"{name}_bad")
        told[name] = {hazard.message for hazard in run(case, case.bad, "sm_90")}
    assert told["number"] == {"barrier 16: a block has barriers 0 to 15"}
    assert told["past_the_end"] == {
        "4-byte read of constant memory at byte 64 of the 64 that __constant__ variables take"
    }
    assert told["before_the_start"] == {
        "4-byte read of constant memory at byte -128 of the 64 that __constant__ variables take"
    }
    assert "lane 16 (and 15 more) of the warp, which the mask names, ended without reaching it" in told["some_lanes"]
    assert told["returned"] == {"a shuffle reads from lane 16, which does not take part in it"}
    assert told["mask"] == {"lane 0 of the warp takes part and is not in the mask"}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_neighbouring_bytes_and_equal_stores_are_no_race(arch: str) -> None:
    args = [np.ones(90, np.uint8), fresh(1, i32), i32(90)]
    ran = launch(HERE / "global_race.cu", "bytes_good", 5, 19, args, device=EmulatedDevice(arch), races=True)
    assert ran.hazards == ()
    for backwards in (0, 1):
        args = [np.ones(96, i32), i32(96), i32(backwards)]
        ran = launch(HERE / "global_race.cu", "agree_good", 3, 32, args, device=EmulatedDevice(arch), races=True)
        assert ran.hazards == ()


@pytest.mark.in_turns(20)
def test_races_in_global_memory_are_told_with_both_blocks_and_only_when_asked_for() -> None:
    case = next(each for each in PAIRS if each.bad == "chain_bad")
    (hazard,) = run(case, case.bad, "sm_90")
    assert (hazard.block, hazard.thread, hazard.count) == ((1, 0, 0), (0, 0, 0), 4)
    assert hazard.message == (
        "4-byte read of global memory (LDG.E) and an access by thread (0, 0, 0) of block (0, 0, 0) (STG.E) with nothing"
        " between that orders blocks: an atomic or a flag with __threadfence, or the end of a launch"
    )
    assert not run(replace(case, races=False), case.bad, "sm_90")
