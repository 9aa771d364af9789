"""Which kernel a GPU's product is given to: by the table of records, by the rule elsewhere, and what is said of it."""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import choices
from gemmlab.core.errors import RecordError
from gemmlab.core.records import load_record
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.choice_values import RECORD, RULE
from gemmlab.dispatch.measurements import FILE, Figures, Measurement, in_parts, shipped_table, table_from_json, time_key
from gemmlab.dispatch.waves import PARTS, estimate, gpu_model, in_domain
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from support.paths import RESULTS

TABLE, OP = shipped_table(), GemmOp()
H200 = gpu_model("H200")
RECORDED = RESULTS / "h200"


def extents(label: str) -> tuple[int, int, int]:
    m, n, k = map(int, label.split("x"))
    return m, n, k


@cache
def swept() -> Mapping[str, Mapping[tuple[GemmProblem, int], float]]:
    """Times of the sweep that were found right: by kernel and configuration, by product and number of parts."""
    found: dict[str, dict[tuple[GemmProblem, int], float]] = {}
    lines = list[dict[str, Any]]()
    for name in (
        "sweep.jsonl.gz",
        "sweep-random.jsonl.gz",
        "sweep-shapes.jsonl.gz",
        "sweep-large.jsonl.gz",
        "sweep-tiles.jsonl.gz",
        "sweep-short.jsonl.gz",
    ):
        with gzip.open(RECORDED / name, "rt", encoding="utf-8") as file:
            _, *more = map(json.loads, file)
        lines += more
    for line in lines:
        if line.get("us") is not None and line["right"]:
            key = key_of_line(line["kernel"], tuple(line["config"].items()))
            if key:
                parts = line["config"].get(PARTS, 1)
                problem = OP.problem_from_json(line["problem"])
                found.setdefault(key, {})[problem, parts] = line["us"]
    return found


@cache
def key_of_line(name: str, values: tuple[tuple[str, int], ...]) -> str:
    """The key of a kernel and a configuration of the sweep; empty if the table cannot have them."""
    kernel, config = find_kernel(name), dict(values)
    # Values that won nowhere have gone since the sweep.
    if (kernel.op, kernel.precision) != (OP.name, "float32") or not kernel.legal({**kernel.params, **config}):
        return ""
    # A parameter that came after the sweep has its default.
    return key_of(name, {name: value for name, value in kernel.configure(config).items() if name != PARTS})


def key_of(kernel: str, config: Mapping[str, int]) -> str:
    return f"{kernel} {json.dumps(dict(config), sort_keys=True)}"


def of_sweep() -> Iterator[tuple[Measurement, Mapping[tuple[GemmProblem, int], float]]]:
    """Entries of the table that the sweep timed, with its times.

    `block_tile` is there for GPUs before sm_80, and has its figures from another record.
    """
    for entry in TABLE.entries:
        if entry.kernel != "block_tile" and (timed := swept().get(key_of(entry.kernel, entry.config))):
            yield entry, timed


def least_of_table() -> Mapping[GemmProblem, float]:
    """The least time of each product of the sweep that a kernel of the table has."""
    least: dict[GemmProblem, float] = {}
    for _, timed in of_sweep():
        for (problem, _), us in timed.items():
            least[problem] = min(us, least.get(problem, math.inf))
    return least


@pytest.mark.in_turns(20)
def test_the_table_holds_what_the_sweep_does() -> None:
    """All times near the least of their product, and no others, to a hundredth of a microsecond."""
    least = least_of_table()
    assert len(least) > 200
    entries = list(of_sweep())
    assert len(entries) >= 25
    for entry, timed in entries:
        near = {
            time_key(problem, parts): us for (problem, parts), us in timed.items() if us <= 1.03 * least[problem]
        }  # fmt: skip
        assert entry.times_us == pytest.approx(near, rel=1e-6, abs=0.006), "makers/choices.py makes it anew"
    timed_entries = [entry for entry, _ in entries]
    others = [one for one in TABLE.entries if one.precision == "float32" and one not in timed_entries]
    assert [(entry.kernel, dict(entry.times_us)) for entry in others] == [("block_tile", {})]


def test_times_of_lower_precisions_are_those_of_their_record() -> None:
    medians: dict[tuple[str, str, str], float] = {}
    for result in load_record(RECORDED / "tf32.json").results:
        if result.facts.get("role") == "rung" and result.samples:
            kernel = result.contestant.removeprefix("kernel:").partition("[")[0]
            whole = find_kernel(kernel).configure(result.facts["config"])  # parameters may be younger
            medians[kernel, key_of("", whole), result.label] = statistics.median(s.time_us for s in result.samples)
    for path in choices.HOPPER_SWEEPS:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line.get("us") is not None and line["right"]:
                    whole = dict(find_kernel(line["kernel"]).configure(line["config"]))
                    label = in_parts(line["size"], whole.pop(PARTS, 1))
                    medians[line["kernel"], key_of("", whole), label] = line["us"]
    lower = [entry for entry in TABLE.entries if entry.precision != "float32"]
    assert lower
    for entry in lower:
        for label, us in entry.times_us.items():
            assert us == pytest.approx(medians[entry.kernel, key_of("", entry.config), label], abs=0.006)


def test_no_sweep_is_left_out_of_the_table() -> None:
    read = {path.name for path in (*choices.SWEEPS, *choices.LATER, *choices.HOPPER_SWEEPS, choices.BATCHES)}
    assert read == {path.name for path in RECORDED.glob("sweep*.jsonl.gz")}


def test_the_table_s_kernels_are_those_of_the_catalog() -> None:
    """Each configuration is there once."""
    names = [key_of(entry.kernel, entry.config) for entry in TABLE.entries]
    assert len(names) == len(set(names))
    for entry in TABLE.entries:
        kernel = find_kernel(entry.kernel)
        alone = {**entry.config, PARTS: 1} if entry.parts else entry.config
        assert kernel.configure(alone) == dict(alone)
        assert (kernel.precision, kernel.layouts, kernel.arch) == (entry.precision, entry.layouts, entry.arch)
        assert (kernel.tiles, kernel.steps, kernel.in_order(alone)) == (entry.grid, entry.steps, entry.in_order)


@pytest.mark.in_turns(20)
def test_the_rule_is_near_what_was_measured() -> None:
    """Errors are logarithms. They count where a kernel is a choice: at most 1.2 times the best of its product."""
    least, errors = least_of_table(), list[float]()
    for entry, timed in of_sweep():
        errors += [
            abs(math.log(estimate(entry, problem, H200, TABLE, parts=parts).us / us))
            for (problem, parts), us in timed.items()
            if us < 1.2 * least[problem] and in_domain(entry, problem)
        ]
    errors.sort()
    assert len(errors) > 2000
    assert statistics.median(errors) < 0.06
    assert errors[len(errors) * 95 // 100] < 0.35


@pytest.mark.in_turns(20)
def test_the_rule_alone_would_have_chosen_well_in_the_sweep() -> None:
    """Without any record, among what was timed of a product. The ratio to the best is the regret."""
    least, chosen = least_of_table(), dict[GemmProblem, tuple[float, float]]()
    for entry, timed in of_sweep():
        for (problem, parts), us in timed.items():
            if in_domain(entry, problem):
                guess = estimate(entry, problem, H200, TABLE, parts=parts).us
                chosen[problem] = min((guess, us), chosen.get(problem, (math.inf, math.inf)))
    assert set(chosen) == set(least)
    regrets = sorted(us / least[problem] for problem, (_, us) in chosen.items())
    assert statistics.median(regrets) <= 1.03
    assert statistics.geometric_mean(regrets) <= 1.08
    assert regrets[len(regrets) * 9 // 10] <= 1.2


@pytest.mark.in_turns(20)
def test_with_its_records_the_library_takes_the_best_of_each_product_of_the_sweep() -> None:
    for problem, us in least_of_table().items():
        found = choose(problem, H200, TABLE, precision="highest")
        assert found.basis == RECORD, problem
        assert found.considered[0].us == pytest.approx(us, abs=0.006), problem


@pytest.mark.parametrize(
    "label", ["512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x8192"]
)
def test_what_was_measured_at_a_size_decides_it(label: str) -> None:
    found = choose(GemmProblem(*extents(label)), H200, TABLE, precision="highest")
    assert found.basis == RECORD
    least = min(e.times_us.get(label, math.inf) for e in TABLE.entries if e.precision == "float32")
    assert found.considered[0].us == least
    assert found.reason.endswith("measured for this product on H200")
    # The same shape elsewhere, or laid out otherwise, was not measured.
    for problem, where in (
        (GemmProblem(*extents(label), lda=extents(label)[2] + 3), H200),
        (GemmProblem(*extents(label)), gpu_model("H100")),
        (GemmProblem(*extents(label), ldb=extents(label)[1] + 1), H200),
    ):
        other = choose(problem, where, TABLE, precision="highest")
        assert other.basis == RULE
        assert not any(candidate.measured for candidate in other.considered)


def test_kernels_outside_of_what_was_measured_come_last() -> None:
    narrow = [entry for entry in TABLE.entries if entry.kernel == "narrow_strip"]
    others = [replace(entry, domain="M == 1", times_us={}) for entry in narrow]
    inside = replace(narrow[0], kernel="naive", domain="", times_us={}, figures=Figures(1e6, 1.0, 1.0))
    table = replace(TABLE, entries=(inside, *others))
    found = choose(GemmProblem(40, 40, 40), H200, table, precision="highest")
    assert {one.kernel for one in found.considered} == {inside.kernel}
    assert found.refused["narrow_strip"] == "is for products with M == 1"
    # With nothing else left they run, and where they were measured they win.
    rest = replace(TABLE, entries=tuple(others))
    assert choose(GemmProblem(40, 40, 40), H200, rest, precision="highest").refused == {}
    assert choose(GemmProblem(1, 40, 40), H200, table, precision="highest").kernel == "narrow_strip"


def test_tables_come_back_from_json_and_others_are_refused() -> None:
    data = json.loads(FILE.read_text(encoding="utf-8"))
    assert table_from_json(json.loads(json.dumps(TABLE.to_json()))) == replace(TABLE, correction=None)
    for bad in (
        {**data, "schema": "gemmlab.choices/9"},
        {**data, "entries": [{"kernel": "naive"}]},
        {"schema": data["schema"]},
        {**data, "memory_gbs": "fast"},
        {**data, "parts_gbs": 10**400},
    ):
        with pytest.raises(RecordError, match="no table of choices"):
            table_from_json(bad)
