"""Recorded spaces in the formats of Kernel Tuner (van Werkhoven 2019): its cache files, and T4 results.

A cache file lists every configuration with its times in milliseconds: Kernel Tuner's simulation mode replays it, and so
does `ReplayBench`. T4 is the results format that several autotuners share (TuningSchema, results-schema 1.0.0).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmlab.core.errors import RecordError
from gemmlab.core.files import replace_file
from gemmlab.tuning.replay import Recorded, RecordedSpace
from gemmlab.tuning.space import Space, space_from

T4_VERSION = "1.0.0"
_FAILED = {"compile": "CompilationFailedConfig", "runtime": "RuntimeFailedConfig", "correctness": "RuntimeFailedConfig"}
_UNIT, _US, _S = "ms", 1e-3, 1e3
"""Kernel Tuner's unit of time, and a microsecond and a second in that unit."""


def read_any(path: Path) -> RecordedSpace:
    """Return the space that a cache file of Kernel Tuner or a file of T4 results records.

    Raises `RecordError` if the file is neither, or cannot be read.
    """
    text = _read(path)
    try:
        if '"cache"' in text:
            return _from_cache(path.stem, json.loads(_closed(text)))
        return _from_t4(path.stem, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RecordError(f"{path} is neither a cache file of Kernel Tuner nor T4 results: {error}") from error


def write_cache(record: RecordedSpace, path: Path, *, scale: float = 1.0) -> None:
    """Write a recorded space as a cache file of Kernel Tuner. Raises `RecordError` if the file cannot be written.

    A compilation's time is divided by the number of compilers, because Kernel Tuner replays one after the other, and by
    the number of configurations that share its program. `scale` multiplies the times of compilation, verification and
    measurement, not those of the kernel.
    """
    space = record.space
    values = {name: sorted({members[at] for members in space.members}) for at, name in enumerate(space.names)}
    cache = {}
    for place, one in enumerate(record.outcomes):
        config = space.config(place)
        entry: dict[str, Any] = {
            **config, "compile_time": record.build_s[place] * _S * scale / record.builders,
            "verification_time": one.verify_s * _S * scale, "benchmark_time": one.turn_s * _S * scale,
            "strategy_time": 0, "framework_time": 0,
        }  # fmt: skip
        if one.fault or not one.us:
            entry["time"] = _FAILED[_validity(one)]
        else:
            entry |= {"time": statistics.median(one.us) * _US, "times": [us * _US for us in one.us]}
        cache[",".join(map(str, config.values()))] = entry
    data = {
        "device_name": str(record.header.get("device", "")),
        "kernel_name": str(record.header.get("kernel", record.name)),
        "problem_size": [1], "tune_params_keys": list(space.names), "tune_params": values, "objective": "time",
        "cache": cache,
    }  # fmt: skip
    _write(path, json.dumps(data, indent=""))


def write_t4(record: RecordedSpace, path: Path) -> None:
    """Write a recorded space as T4 results, with all configurations. Raises `RecordError` if it cannot be written."""
    results = []
    for place, one in enumerate(record.outcomes):
        validity = _validity(one)
        median = [statistics.median(one.us) * _US] if one.us else []
        results.append({
            "configuration": record.space.config(place),
            "times": {
                "compilation_time": one.build_s * _S, "validation": one.verify_s * _S, "framework": 0.0,
                "search_algorithm": 0.0, "benchmark": one.turn_s * _S, "runtimes": [us * _US for us in one.us],
            },
            "invalidity": validity, "correctness": int(validity == "correct"),
            "measurements": [{"name": "time", "value": value, "unit": _UNIT} for value in median],
            "objectives": ["time"],
        })  # fmt: skip
    about = {name: value for name, value in record.header.items() if isinstance(value, str | int | float)}
    metadata = {"timeunit": "milliseconds", **about}
    _write(path, json.dumps({"schema_version": T4_VERSION, "metadata": metadata, "results": results}, indent=1))


def _validity(one: Recorded) -> str:
    if one.wrong:
        return "correctness"
    if one.us and not one.fault:
        return "correct"
    return "runtime" if one.verify_s or one.turn_s else "compile"


def _from_cache(name: str, data: Mapping[str, Any]) -> RecordedSpace:
    names = tuple(data["tune_params_keys"])
    entries = list(data["cache"].values())
    space = _space(names, entries)
    outcomes = []
    for entry in entries:
        time = entry.get(data.get("objective", "time") if isinstance(data.get("objective"), str) else "time")
        fault = "" if isinstance(time, int | float) and "__error__" not in entry else str(entry.get("__error__", time))
        us = tuple(each / _US for each in entry.get("times", [time])) if not fault else ()
        build, check, turn = (
            float(entry.get(key, 0.0)) / _S for key in ("compile_time", "verification_time", "benchmark_time")
        )
        outcomes.append(Recorded(us, fault, False, build, check, turn))
    header = {"kernel": str(data.get("kernel_name", name)), "device": str(data.get("device_name", ""))}
    return RecordedSpace(f"{header['kernel']} ({name})", space, tuple(outcomes), 1, header)


def _from_t4(name: str, data: Mapping[str, Any]) -> RecordedSpace:
    results = data["results"]
    if str(data["schema_version"]).partition(".")[0] != T4_VERSION.partition(".")[0]:
        raise RecordError(f"T4 results of version {data['schema_version']}; this version reads {T4_VERSION}")
    names = tuple(results[0]["configuration"])
    space = _space(names, [result["configuration"] for result in results])
    outcomes = []
    for result in results:
        times, validity = result["times"], result["invalidity"]
        us = [each / _US for each in times.get("runtimes", ())]
        us = us or [one["value"] / _US for one in result.get("measurements", ()) if one["name"] == "time"]
        build = times.get("compilation_time", times.get("compilation", 0.0)) / _S
        outcomes.append(
            Recorded(
                tuple(us) if validity == "correct" else (), "" if validity == "correct" else validity,
                validity == "correctness", build, times.get("validation", 0.0) / _S, times.get("benchmark", 0.0) / _S,
            )
        )  # fmt: skip
    header = {key: value for key, value in data.get("metadata", {}).items() if key in ("kernel", "device", "problem")}
    return RecordedSpace(str(header.get("kernel", name)), space, tuple(outcomes), 1, header)


def _space(names: tuple[str, ...], configs: list[Mapping[str, int]]) -> Space:
    space = space_from(names, configs)
    if len(space) < len(configs):
        raise RecordError("a configuration is listed twice")
    return space


def _closed(text: str) -> str:
    """Return a cache file's text with closing braces, which Kernel Tuner leaves out while it tunes."""
    text = text.rstrip()
    return text if text.endswith(("}\n}", "}}")) else text.rstrip(",") + "}\n}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot read {path}: {error}") from error


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}") from error
