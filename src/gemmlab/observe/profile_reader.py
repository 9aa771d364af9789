"""Read profiles of kernels, by Nsight Compute or the emulator, from any record that has some.

A record of `gemmlab profile` or of counts (`gemmlab.record/1`), and the older `gemmlab.ncu/1`, become the same values.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmlab.core.counters import EXACT
from gemmlab.core.errors import RecordError
from gemmlab.core.records import Record, Result, from_json
from gemmlab.kernels.aliases import current_contestant, with_current_ids
from gemmlab.kernels.catalog import all_kernels
from gemmlab.observe.ncu_report import METRICS
from gemmlab.observe.profile import NCU, Profile, Profiles, largest_first

__all__ = ["Profile", "Profiles", "from_record", "load_profiles"]

OLD_SCHEMA = "gemmlab.ncu/1"
_HEAD = ("op", "device", "arch", "profiler", "time_utc")
_SAME = {
    "inst_executed": "smsp__inst_executed.sum",
    "thread_inst_executed": "smsp__thread_inst_executed.sum",
    "thread_inst_executed_true": "smsp__thread_inst_executed_pred_on.sum",
}
"""Nsight Compute's metric by instruction -> its metric of a launch, which counts the same. The sum of the first differs
from the second only for branches on two predicates.
"""


def load_profiles(path: str | os.PathLike[str]) -> Profiles:
    """Read a record of profiles or of counts.

    Raises `RecordError` for a file that is unreadable, malformed, newer, or holds no profiles or counts.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    try:
        if isinstance(data, dict) and data.get("schema") == OLD_SCHEMA:
            return _from_old(data)
        return from_record(from_json(data))
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def from_record(record: Record) -> Profiles:
    """Return the profiles of a record. Raises `RecordError` for a record of another kind or a malformed one."""
    if record.kind not in ("profile", "count"):
        raise RecordError(f"a record of kind {record.kind!r} holds no profiles")
    record = with_current_ids(record, notice=False)
    device = record.device
    facts = _mapping(device.get("facts", {}), "device.facts")
    return Profiles(
        op=record.op, device=_text(device.get("name", ""), "device.name"),
        arch=_arch(facts),
        profiler=_text(device.get("profiler", ""), "device.profiler"),
        time_utc=_text(record.environment.get("time_utc", ""), "environment.time_utc"),
        profiles=tuple(_profile(result) for result in record.results), notes=record.notes,
    )  # fmt: skip


def _arch(facts: Mapping[str, Any]) -> str:
    """Return the architecture: the emulator's fact `arch`, else that of the compute capability; empty without both."""
    capability = _text(facts.get("compute_capability", ""), "device.facts.compute_capability").replace(".", "")
    return _text(facts.get("arch", f"sm_{capability}" if capability else ""), "device.facts.arch")


def _profile(result: Result) -> Profile:
    facts, where = result.facts, f"{result.contestant} at {result.label}"
    origin = _text(facts.get("origin", ""), f"{where}: origin")
    rest = {name: value for name, value in facts.items() if name not in _FIGURES}
    opcodes = {name: n for name, n in _numbers(facts.get("opcodes", {}), f"{where}: opcodes").items() if n}
    if origin != NCU:
        metrics, inexact = _emulated(facts, where)
        places = {name: name if name in metrics else _SAME.get(name, name) for name in METRICS}
        counts = {name: metrics[place] for name, place in places.items() if place in metrics}
        named = (result.contestant.removeprefix("kernel:"),) if metrics else ()
        return Profile(result.contestant, result.label, named, rest, counts, metrics, origin, largest_first(opcodes),
                       inexact, notes=result.notes)  # fmt: skip
    return Profile(
        result.contestant, result.label, _texts(facts.get("kernels"), f"{where}: kernels"), rest,
        _numbers(facts.get("counts"), f"{where}: counts"), _numbers(facts.get("metrics"), f"{where}: metrics"),
        NCU, largest_first(opcodes), notes=result.notes, **_beside(facts, where),
    )  # fmt: skip


def _from_old(data: Mapping[str, Any]) -> Profiles:
    launches = data.get("launches")
    if not isinstance(launches, list):
        raise RecordError("launches is malformed: a list is needed")
    op, device, arch, profiler, time = (_text(data.get(name), name) for name in _HEAD)
    found = tuple(_old(one, f"launches[{index}]") for index, one in enumerate(launches))
    return Profiles(op, device, arch, profiler, time, found)


def _old(one: object, where: str) -> Profile:
    launch = _mapping(one, where)
    contestant = current_contestant(_text(launch.get("contestant"), f"{where}.contestant"), notice=False)
    # Old records lack the precision of gemmlab's kernels.
    known = {f"kernel:{kernel.id}": {"precision": kernel.precision} for kernel in all_kernels()}
    facts = {**known.get(contestant, {}), **_mapping(launch.get("facts"), f"{where}.facts")}
    return Profile(
        contestant, _text(launch.get("size"), f"{where}.size"),
        _texts(launch.get("kernels"), f"{where}.kernels"), facts,
        _numbers(launch.get("counts"), f"{where}.counts"), _numbers(launch.get("metrics"), f"{where}.metrics"),
        **_beside(launch, where),
    )  # fmt: skip


_FIGURES = ("kernels", "counts", "metrics", "counters", "facts", "opcodes", "origin", "hazards", "emulated",
            "disagreements")  # fmt: skip
"""Facts of a result that become fields of the profile and are left out of its `facts`."""


def _emulated(facts: Mapping[str, Any], where: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return an emulated result's values by metric, and the reasons for those that are inexact and not 0."""
    found = {name: _mapping(metric, f"{where}: {name}")
             for name, metric in _mapping(facts.get("counters", {}), f"{where}: counters").items()}  # fmt: skip
    values = _numbers({name: metric.get("value") for name, metric in found.items()}, f"{where}: counters")
    doubts = {name: str(metric.get("why", "")) for name, metric in found.items()
              if metric.get("confidence") != EXACT and values[name]}  # fmt: skip
    return values, doubts


def _beside(facts: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields `emulated` and `disagreements` of a profile by ncu: empty and `None` without the emulator."""
    differ = facts.get("disagreements")
    emulated = _mapping(facts.get("emulated", {}), f"{where}: emulated")
    return {
        "emulated": _numbers(emulated.get("totals", {}), f"{where}: emulated"),
        "disagreements": None if differ is None else _texts(differ, f"{where}: disagreements"),
    }


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that a record has")
    return value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecordError(f"{where} is malformed: an object is needed")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{where} is malformed: {str(value)[:60]!r}")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise RecordError(f"{where} is malformed: a list is needed")
    return tuple(_text(item, where) for item in value)


def _numbers(value: object, where: str) -> dict[str, float]:
    return {name: _number(item, f"{where}.{name}") for name, item in _mapping(value, where).items()}


def _number(value: object, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise RecordError(f"{where} is malformed: {str(value)[:60]!r}")
