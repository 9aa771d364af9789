"""Whatever JSON a record holds: verbs read it, or refuse it by a `GemmlabError`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.cli.answer import print_json
from gemmlab.cli.compare_tables import print_comparison
from gemmlab.core.errors import GemmlabError
from gemmlab.core.records import load_record, save_record
from gemmlab.observe.profile_reader import load_profiles
from gemmlab.pages.make import Plan, make, summary
from gemmlab.results.comparison import compare
from support.paths import CPU, RESULTS
from support.trials import Trials

RECORDS = (
    *(f"{CPU}/{name}.json" for name in ("climb", "small", "cache", "reduce", "packing")), "h200/climb-cuda.json",
    "h200/configs.json", "h200/ncu.json", "h200/reduce.json", "emulated/counters.json",
)  # fmt: skip
MOST_RESULTS, MOST_SAMPLES = 4, 2
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**63, 2**64, 10**400, -(10**400), float("inf"),
    float("-inf"), float("nan"), "", "x", "inf", "nan", "\ud800", "\x00", "\x1b[31m", "<script>", "1x1x1", "2x2", "é",
    "kernel:naive", "kernel:", "a" * 3000, [], [[]], [1], [None], ["x"], {}, {"": {}}, {"x": 1}, {"a": [{"b": None}]},
)  # fmt: skip


def shortened(record: Any, rng: np.random.Generator) -> Any:
    """Few results and samples of a record, so that each trial is quick."""
    name = "results" if "results" in record else "launches"
    whole = record[name]
    chosen = sorted(rng.choice(len(whole), min(MOST_RESULTS, len(whole)), replace=False).tolist())
    kept = copy.deepcopy({**record, name: [whole[index] for index in chosen]})
    for result in kept[name]:
        if "samples" in result:
            columns = result["samples"]
            result["samples"] = (
                {name: column[:MOST_SAMPLES] for name, column in columns.items()} if columns else columns
            )
    return kept


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Every (names on the way, container, key) within a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        there = (*path, key) if isinstance(key, str) else path
        yield there, value, key
        yield from places(inner, there)


def one_place(record: Any, rng: np.random.Generator) -> tuple[Any, Any] | None:
    """A container and a key in it: each field is as likely as any other, however many samples there are."""
    found: dict[tuple[str, ...], list[tuple[Any, Any]]] = {}
    for path, container, key in places(record):
        found.setdefault(path, []).append((container, key))
    if not found:
        return None
    fields = list(found.values())
    same = fields[rng.integers(len(fields))]
    return same[rng.integers(len(same))]


def change(record: Any, rng: np.random.Generator) -> None:
    """Some values exchanged, removed, doubled or given another name."""
    for _ in range(1 + rng.integers(3)):
        place, source = one_place(record, rng), one_place(record, rng)
        if place is None or source is None:
            return
        container, key = place
        match rng.integers(6):
            case 0:
                del container[key]
            case 1:
                container[key] = copy.deepcopy(source[0][source[1]])
            case 2 if isinstance(container, dict):
                container[str(VALUES[rng.integers(len(VALUES))])] = container.pop(key)
            case _:
                container[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def reported(path: Path, **more: Any) -> None:
    made = make(Plan([path], explained=False, **more))
    json.dumps(summary(made.page.sections), allow_nan=False)


def compared(old: Path, new: Path) -> None:
    before, after = load_record(old), load_record(new)
    found = compare(before, after, other_device=True)
    print_comparison(found, before, after, everything=True)
    print_json(found.to_json())


def test_records_are_read_or_refused(
    trials: Trials, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    whole = [json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in RECORDS]
    old, new, again = (tmp_path / name for name in ("old.json", "new.json", "again.json"))
    uses: tuple[Callable[[], object], ...] = (
        lambda: compared(old, new),
        lambda: compared(new, old),
        lambda: reported(new),
        lambda: reported(old, profiles=[new]),
        lambda: load_profiles(new),
        lambda: save_record(load_record(new), again),
    )
    for rng in trials:
        record = shortened(whole[rng.integers(len(whole))], rng)
        old.write_text(json.dumps(record), encoding="utf-8")
        change(record, rng)
        new.write_text(json.dumps(record, ensure_ascii=bool(rng.integers(2))), encoding="utf-8", errors="surrogatepass")
        with suppress(GemmlabError):
            uses[rng.integers(len(uses))]()
        # What was printed can be printed: no half of a surrogate pair is in it.
        capsys.readouterr().out.encode()
