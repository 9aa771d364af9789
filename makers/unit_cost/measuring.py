"""Measure one loop, one load behind others, or one load beside traffic."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Launch
from gemmlab.devices.device import Window
from unit_cost import latencies, mixes
from unit_cost.machine import FULL, WORD, Row, Runner, spread


def run_loop(runner: Runner, loop: mixes.Loop) -> Row:
    """Return the cycles of a turn of a loop over all SMs, from launches of few and of many turns.

    They are those of the run with the least median; the medians of all runs are there too.
    """
    extent, blocks = runner.extent, runner.extent.sms * loop.blocks
    few, many = extent.turns, 4 * extent.turns
    runs, seen = list[npt.NDArray[np.float64]](), list[int]()
    for _ in range(extent.repeats):
        cycles = []
        for turns in (few, many):
            args: list[Any] = [runner.data, runner.sink, np.int32(turns)]
            if loop.kernel.startswith("mix<"):
                pace = blocks * loop.warps * loop.span if loop.source == mixes.FAR else 0
                args += [np.uint32(pace), np.uint32(extent.far_words - 1)]
            if loop.source == mixes.FAR:
                runner.touch(extent.far_words)
            when, host = runner.out(mixes.RECORD * blocks * loop.warps, np.uint64)
            runner.launch(loop.kernel, Launch((when, *args), (blocks, 1, 1), (32 * loop.warps, 1, 1), loop.smem_bytes))
            records = runner.fetch(when, host).reshape(-1, mixes.RECORD)
            cycles.append(mixes.cycles_by_sm(records))
            seen += np.unique(records[:, 2], return_counts=True)[1].tolist()
        # Without all SMs in both, blocks were not spread as planned.
        both = min(map(len, cycles))
        runs.append((cycles[1][:both] - cycles[0][:both]) / (many - few))
    medians = [float(np.median(one)) for one in runs]
    best = runs[int(np.argmin(medians))]
    return {
        "label": loop.label, "cycles": round(min(medians), 3), "runs": [round(m, 3) for m in medians],
        "over_sms": spread(best), "warps_of_sm": [min(seen), max(seen)],
    }  # fmt: skip


def run_behind(runner: Runner, case: latencies.Behind) -> Row:
    """Return the cycles of one case of a load behind others: until its value is there, and until all are."""
    rounds, step = runner.extent.rounds, latencies.STEP if runner.extent is FULL else 1024
    place: dict[str, Any] = {}
    words = step * rounds + 16384
    for which, kind in (("first", case.first), ("last", case.last)):
        far = words if which == "last" else 0
        place[which] = (
            runner.unread(words) if kind == latencies.MEMORY else Window(runner.data, WORD * far, WORD * words)
        )
    if case.near:
        place["last"] = Window(
            place["first"].whole, place["first"].offset + WORD * latencies.SAME[case.near], WORD * (words - 32)
        )
    hot = (case.first == latencies.L1) + 2 * (case.last == latencies.L1)
    runner.touch(min(2 * words, runner.extent.far_words))
    buffer, host = runner.out(3 * rounds, np.uint32)
    tail: tuple[Any, ...] = (np.int32(case.later),) if case.warps > 1 else (np.int32(case.lanes),)
    args = (
        buffer,
        place["first"],
        np.uint32(step),
        place["last"],
        np.uint32(step),
        np.int32(rounds),
        np.int32(hot),
        *tail,
    )
    runner.launch(case.kernel, Launch(args, (1, 1, 1), (32 * case.warps, 1, 1)))
    found = runner.fetch(buffer, host).reshape(-1, 3)[1:]
    return {
        **asdict(case),
        "label": case.label,
        "there": spread(found[:, 0]),
        "all": spread(found[:, 1]),
        "issued": spread(found[:, 2]),
    }


def run_loaded(runner: Runner, case: latencies.Loaded) -> tuple[Row, npt.NDArray[np.uint16]]:
    """Return the latencies of one case beside traffic with the bytes that the other warps got, and each latency."""
    extent, probes, chasers = runner.extent, runner.extent.probes, min(case.chasers, runner.extent.sms)
    full = extent is FULL
    step = 64 if case.probe == latencies.L2 else 4096 if full else 64
    probe = (
        Window(runner.data, 0, WORD * extent.far_words) if case.probe == latencies.L2 else runner.unread(probes * step)
    )
    half = extent.cold_words // 2
    from_far = case.load == latencies.MEMORY
    load = (
        Window(runner.cold, WORD * half, WORD * half) if from_far else Window(runner.data, 0, WORD * extent.far_words)
    )
    mask = half - 1 if from_far else extent.far_words - 1
    warps = case.warps * extent.sms
    when, records = runner.out(mixes.RECORD * warps, np.uint64)
    found, latency = runner.out(chasers * probes, np.uint32)
    loaded, counts = runner.out(warps, np.uint32)
    done, _ = runner.out(1, np.int32)
    runner.touch(extent.far_words)
    turns = 1 << 20 if full else 4
    args = (
        when, found, probe, np.int32(probes), np.uint32(step), load, np.uint32(mask), np.int32(turns),
        np.int32(case.idle), np.int32(chasers), done, loaded, runner.sink,
    )  # fmt: skip
    runner.launch(case.kernel, Launch(args, (extent.sms, 1, 1), (32 * case.warps, 1, 1)))
    records, counts, latency = (
        runner.fetch(when, records).reshape(-1, 4),
        runner.fetch(loaded, counts),
        runner.fetch(found, latency),
    )
    runner.device.free(done)
    cycles = np.maximum(1, records[:, 1].astype(np.int64) - records[:, 0].astype(np.int64))
    rate = float((counts * 512.0 * case.depth / cycles)[counts > 0].sum()) / extent.sms
    by_chaser = latency.reshape(chasers, probes)
    row = {**asdict(case), "label": case.label, "latency": spread(latency), "bytes_a_cycle_and_sm": round(rate, 3),
           "median_of_chaser": [float(m) for m in np.median(by_chaser, axis=1)],
           "sm_of_chaser": records[:: case.warps, 2][:chasers].astype(int).tolist()}  # fmt: skip
    return row, np.minimum(by_chaser, 65535).astype(np.uint16)
