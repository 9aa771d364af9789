"""The compiled cache model against a plain one in Python, and the seam that feeds it."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.cpu import CpuDevice
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.probe import STATE
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, F64, I64, pointer
from gemmlab.kernels.catalog import find_kernel
from gemmlab.probes.cachesim import (
    BANK,
    COUNTERS,
    PACKING,
    PAGE,
    REFERENCE,
    WORKSPACE,
    WORKSPACE_END,
    CacheProbe,
    Caches,
    Level,
)
from gemmlab.probes.catalog import probe_of
from gemmlab.probes.stopwatch import PackingClock

TINY = Caches(Level(512, 2), Level(2048, 4), Level(4 * PAGE, 2, PAGE))
DIRECT = Caches(Level(256, 1), Level(1024, 1), Level(2 * PAGE, 1, PAGE))
ODD = Caches(Level(3 * 3 * 64, 3), Level(5 * 7 * 64, 7), Level(3 * PAGE, 3, PAGE))
ONE_SET = Caches(Level(512, 8), Level(1024, 16), Level(4 * PAGE, 4, PAGE))
Access = tuple[int, int, bool]


class PlainLevel:
    """Sets of lines in order of use: True for lines that were written to."""

    def __init__(self, level: Level) -> None:
        self.ways = level.ways
        self.sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(level.sets)]

    def use(self, line: int, *, write: bool) -> tuple[bool, int | None]:
        """Whether the line was there, and the written line that had to go."""
        # The model numbers lines from 1.
        places = self.sets[(line + 1) % len(self.sets)]
        if line in places:
            places[line] |= write
            places.move_to_end(line)
            return True, None
        places[line] = write
        if len(places) > self.ways:
            gone, written = places.popitem(last=False)
            return False, gone if written else None
        return False, None


def plain_counts(caches: Caches, accesses: Sequence[Access]) -> dict[str, int]:
    l1, l2, tlb = PlainLevel(caches.l1), PlainLevel(caches.l2), PlainLevel(caches.tlb)
    counts = dict.fromkeys(COUNTERS, 0)
    for address, size, write in accesses:
        counts["accesses"] += 1
        counts["bytes"] += size
        for line in sorted({byte // 64 for byte in range(address, address + size)}):
            hit, dropped = l1.use(line, write=write)
            if not hit:
                counts["l1_misses"] += 1
                hit, gone = l2.use(line, write=False)
                counts["l2_misses"] += not hit
                counts["l2_written_back"] += gone is not None
            if dropped is not None:
                counts["l1_written_back"] += 1
                _hit, gone = l2.use(dropped, write=True)
                counts["l2_written_back"] += gone is not None
            counts["tlb_misses"] += not tlb.use(line * 64 // PAGE, write=False)[0]
    return counts


class Replay:
    """`cache_touch` as a function of a list of accesses."""

    def __init__(self, caches: Caches) -> None:
        probe = CacheProbe(caches)
        module = Module(host_target(), probe)
        words = pointer(I64)
        with module.function("replay", [("accesses", words), ("count", I64)], exported=True) as fn:
            accesses, count = fn.args
            with fn.range(count) as index:
                at = accesses + index * 3
                fn.call(module["cache_touch"], at[0], at[1], at[2])
            fn.finish()
        self.state = np.zeros(probe.words, np.int64)
        code = compile_object(module.text(), host_target())
        self._code = load_object(code, ["replay"], {STATE: self.state.ctypes.data})
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._code.addresses["replay"])

    def run(self, accesses: Sequence[Access]) -> None:
        words = np.array(accesses, np.int64).reshape(-1)
        self._call(words.ctypes.data, len(accesses))

    def bank(self, first: int = 0) -> dict[str, int]:
        return {name: int(self.state[first + index]) for index, name in enumerate(COUNTERS)}


@cache
def replay(caches: Caches) -> Replay:
    return Replay(caches)


def counted(caches: Caches, accesses: Sequence[Access]) -> dict[str, int]:
    machine = replay(caches)
    machine.state[:] = 0
    machine.run(accesses)
    return machine.bank()


streams = st.lists(
    st.tuples(st.integers(0, 6 * PAGE), st.sampled_from((0, 1, 4, 16, 64, 130)), st.booleans()), max_size=300
)


@pytest.mark.parametrize("caches", [TINY, DIRECT, ODD, ONE_SET], ids=["tiny", "direct", "odd", "one-set"])
@given(accesses=streams)
def test_random_streams_count_as_in_the_plain_model(caches: Caches, accesses: list[Access]) -> None:
    assert counted(caches, accesses) == plain_counts(caches, accesses)


def column_walk(rows: int, columns: int, row_bytes: int, *, write: bool) -> list[Access]:
    return [(4 * j + i * row_bytes, 4, write) for j in range(columns) for i in range(rows)]


@pytest.mark.parametrize("caches", [TINY, ODD, Caches(Level(4096, 8), Level(32768, 8), TINY.tlb)])
@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("row_bytes", [64, 68, 256, 260, 1024, 4096])
def test_structured_streams_count_as_in_the_plain_model(caches: Caches, row_bytes: int, write: bool) -> None:
    accesses = column_walk(40, 20, row_bytes, write=write) + column_walk(8, 40, row_bytes, write=False)
    assert counted(caches, accesses) == plain_counts(caches, accesses)


def test_a_loop_just_too_long_for_the_cache_misses_always_and_one_that_fits_never_again() -> None:
    lines = ONE_SET.l1.size // 64
    fits, too_long = ([(64 * line, 4, False) for line in range(n)] for n in (lines, lines + 1))
    assert counted(ONE_SET, fits * 9)["l1_misses"] == lines
    assert counted(ONE_SET, too_long * 9)["l1_misses"] == 9 * (lines + 1)
    assert counted(ONE_SET, too_long * 9)["l2_misses"] == lines + 1


def test_columns_of_a_power_of_two_apart_share_sets() -> None:
    caches = Caches(Level(4096, 4), Level(65536, 16), TINY.tlb)
    apart, crowded = (column_walk(32, 16, row_bytes, write=False) for row_bytes in (4 * 272, 4 * 256))
    assert counted(caches, apart)["l1_misses"] == 32
    assert counted(caches, crowded)["l1_misses"] == 32 * 16


def test_changed_lines_are_written_back_once_each() -> None:
    lines = 1000
    writes = [(64 * line + 4 * word, 4, True) for line in range(lines) for word in range(16)]
    found = counted(TINY, writes)
    assert found["l1_misses"] == found["l2_misses"] == lines
    assert found["l1_written_back"] == lines - TINY.l1.size // 64
    assert counted(TINY, [(at, size, False) for at, size, _ in writes])["l1_written_back"] == 0


def test_packing_has_a_bank_of_its_own() -> None:
    machine = replay(TINY)
    machine.state[:] = 0
    machine.state[WORKSPACE : WORKSPACE_END + 1] = 4096, 8192
    machine.run([(4095, 1, True), (4096, 1, True), (8191, 1, True), (8192, 1, True), (5000, 4, False)])
    assert (machine.bank()["accesses"], machine.bank(BANK)["accesses"]) == (3, 2)
    machine.state[PACKING] = 1
    machine.run([(64, 32, False)])
    assert (machine.bank()["accesses"], machine.bank(BANK)["bytes"]) == (3, 34)


def run_probed(emit: Callable[[Module], None], *arguments: int) -> dict[str, int]:
    """The counts of a module's `main(floats, count)`, whose memory starts on a page."""
    probe = CacheProbe(TINY)
    module = Module(host_target(), probe)
    emit(module)
    state = np.zeros(probe.words, np.int64)
    linked = load_object(compile_object(module.text(), host_target()), ["main"], {STATE: state.ctypes.data})
    room = np.zeros(4 * PAGE, np.uint8)
    start = room.ctypes.data + -room.ctypes.data % PAGE
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(linked.addresses["main"])(start, *arguments)
    return {name: int(state[index]) for index, name in enumerate(COUNTERS)}


MAIN = (("floats", pointer(F32)), ("count", I64))


def test_loads_and_stores_of_any_width_are_seen() -> None:
    lanes = host_target().lanes

    def emit(module: Module) -> None:
        with module.function("main", MAIN, exported=True) as fn:
            floats, _count = fn.args
            fn.store(floats + 100, fn.load(floats))
            fn.store(floats + 200, fn.load(floats + 1, lanes))
            fn.store(fn.cast(floats + 300, F64), fn.load(fn.cast(floats, F64)))
            fn.finish()

    found = run_probed(emit, 0)
    assert (found["accesses"], found["bytes"]) == (6, 2 * 4 + 2 * 4 * lanes + 2 * 8)
    assert found["l1_misses"] == (6 if lanes == 16 else 4)


@pytest.mark.parametrize("count", [0, 1, 3, 99])
def test_masked_accesses_count_the_lanes_that_are_on(count: int) -> None:
    lanes = host_target().lanes

    def emit(module: Module) -> None:
        with module.function("main", MAIN, exported=True) as fn:
            floats, on = fn.args
            mask = fn.first_lanes(on, lanes)
            fn.store(floats + 64, fn.load(floats, lanes, mask), mask)
            fn.finish()

    found = run_probed(emit, count)
    assert found["bytes"] == 2 * 4 * min(count, lanes)
    assert found["l1_misses"] == (2 if count else 0)


def test_stack_and_control_words_are_not_seen() -> None:
    def emit(module: Module) -> None:
        with module.function("main", MAIN, exported=True) as fn:
            floats, count = fn.args
            sums = fn.scratch(F32, 8)
            with fn.range(8) as index:
                sums[index] = 0.0
                sums[index] = sums[index] + sums[0]
            words = fn.cast(floats, I64)
            words[1] = words[0] + count
            fn.prefetch(floats)
            floats[8] = sums[3]
            fn.finish()

    assert run_probed(emit, 1)["accesses"] == 1


def test_code_for_a_plain_target_knows_nothing_of_probes() -> None:
    kernel, device = find_kernel("packed"), CpuDevice()
    config = kernel.configure()
    plain = kernel.program(config, device.target(config))
    probed = kernel.program(config, ProbedCpu(CacheProbe(TINY)).target(config))
    assert STATE not in plain.emit()
    assert STATE in probed.emit()
    with pytest.raises(DeviceError, match="caches="):
        device.build(probed)
    with pytest.raises(UsageError, match="packed is for"):
        ProbedCpu(CacheProbe(TINY)).build(plain)
    with pytest.raises(UsageError, match="packing-clock"):
        ProbedCpu(PackingClock()).build(probed)


@pytest.mark.parametrize("probe", [CacheProbe(TINY), CacheProbe(REFERENCE), PackingClock()])
def test_targets_name_their_probe(probe: CacheProbe | PackingClock) -> None:
    found = probe_of(f"x86_64:16:some-cpu:{probe.name}")
    assert found is not None
    assert (found.name, found.words) == (probe.name, probe.words)


def test_targets_without_a_probe_or_with_an_unknown_one() -> None:
    assert probe_of("x86_64:16:some-cpu") is None
    for name in ("x-ray", "caches=1K/2", "caches=512/2,2048/4,16384/2,1/1"):
        with pytest.raises(UsageError, match="no probe"):
            probe_of(f"x86_64:16:some-cpu:{name}")


def test_levels_as_text() -> None:
    assert Level.parse("48K/12") == Level(49152, 12)
    assert Level.parse("2M/16").sets == 2048
    for text in ("48K", "48K/", "48K/0", "48K/x", "/8", "48Q/12", "100/3", "0/1", ""):
        with pytest.raises(UsageError, match="cache"):
            Level.parse(text)


def test_the_tables_hold_every_line() -> None:
    assert REFERENCE.words == 768 + 32768 + 96
