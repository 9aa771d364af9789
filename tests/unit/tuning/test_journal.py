"""The journal: nothing is lost, nothing is measured twice, and a resumed search gives the same answer."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.tuning.journal import Journal, JournaledBench
from gemmlab.tuning.outcomes import Turn, Verdict
from gemmlab.tuning.replay import RecordedSpace, ReplayBench, read_space
from gemmlab.tuning.search import Search
from gemmlab.tuning.strategies import Halving, run_within_budget
from support.made_up_spaces import valley

HEADER = {"kernel": "valley", "problem": "64", "device": "made up", "builders": 2}


class Stop(Exception):  # noqa: N818 - stands for Ctrl-C
    pass


class StoppingBench(ReplayBench):
    """A replay that is interrupted after a number of outcomes, and lists what it measured."""

    def __init__(self, record: RecordedSpace, after: int = 10**9) -> None:
        super().__init__(record)
        self.after, self.measured = after, list[tuple[str, int]]()

    def _count(self, kind: str, place: int) -> None:
        if len(self.measured) >= self.after:
            raise Stop
        self.measured.append((kind, place))

    def verify(self, place: int) -> Verdict:
        self._count("verify", place)
        return super().verify(place)

    def turn(self, place: int) -> Turn:
        self._count("turn", place)
        return super().turn(place)


def searched(path: Path, bench: ReplayBench, record: RecordedSpace, budget: float = 1e9) -> Search:
    with Journal(path, record.space, HEADER) as journal:
        search = Search(record.space, JournaledBench(bench, journal), budget)
        run_within_budget(Halving(3), search)
    return search


@settings(deadline=None, max_examples=5)
@given(stops=st.lists(st.integers(1, 120), min_size=1, max_size=2), cut=st.integers(0, 60))
@example(stops=[2], cut=0)
@pytest.mark.slow
def test_an_interrupted_search_resumes_to_the_same_answer(
    stops: Sequence[int], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record = valley(faults=0.1, wrong=0.1, turns=1)
    path = tmp_path_factory.mktemp("journal") / "a.jsonl"
    # Without a limit: the clock of a resumed search differs, and with it what a budget has room for.
    whole = searched(path.with_name("whole.jsonl"), StoppingBench(record), record)
    for after in stops:
        bench = StoppingBench(record, after)
        try:
            searched(path, bench, record)
        except Stop:
            data = path.read_bytes()
            # A line that was being written is cut off anywhere.
            path.write_bytes(data[: max(len(data) - cut, data.find(b"\n") + 1)])
    before = path.read_bytes()
    resumed = searched(path, StoppingBench(record), record)
    assert path.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    expected, found = whole.best(), resumed.best()
    assert expected is not None
    assert found is not None
    assert record.space.members[found.place] == record.space.members[expected.place]


@pytest.mark.in_turns(20)
def test_what_a_journal_has_is_not_measured_again(tmp_path: Path) -> None:
    record = valley(turns=1)
    first = StoppingBench(record, 40)
    with pytest.raises(Stop):
        searched(tmp_path / "a.jsonl", first, record)
    second = StoppingBench(record)
    search = searched(tmp_path / "a.jsonl", second, record)
    verified = [place for kind, place in (*first.measured, *second.measured) if kind == "verify"]
    assert len(verified) == len(set(verified)) == len(search.standings)
    third = StoppingBench(record)
    again = searched(tmp_path / "a.jsonl", third, record)
    assert not third.measured
    assert again.best() == search.best()
    assert again.bench.seconds == pytest.approx(search.bench.seconds, abs=1e-4)


def test_a_longer_budget_goes_on_with_what_is_there(tmp_path: Path) -> None:
    record = valley(turns=1)
    short = searched(tmp_path / "a.jsonl", StoppingBench(record), record, 20.0)
    long = searched(tmp_path / "a.jsonl", StoppingBench(record), record, 60.0)
    assert short.standings.keys() <= long.standings.keys()
    assert long.bench.seconds > short.bench.seconds


@pytest.mark.in_turns(20)
def test_a_journal_is_a_recorded_space(tmp_path: Path) -> None:
    record = valley(faults=0.1, wrong=0.1, noise=0.01)
    search = searched(tmp_path / "a.jsonl", ReplayBench(record), record)
    found = read_space(tmp_path / "a.jsonl")
    best = search.best()
    assert best is not None
    place = found.space.places[record.space.members[best.place]]
    assert found.median_us(place) == pytest.approx(best.median)
    assert found.builders == 2
    assert sum(one.wrong for one in found.outcomes) == sum(one.fault == "wrong result" for one in search.faults())


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("", {"builders": "many"}),
        ("", {"builders": []}),
        ("", {"schema": "other/1"}),
        ("build", {"at": 10**400}),
        ("verdict", {"seconds": "long"}),
        ("turn", {"seconds": None}),
        ("turn", {"kind": "guess"}),
    ],
)
def test_a_damaged_recorded_space_is_told_with_its_name(kind: str, changed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = valley(turns=1)
    searched(path, ReplayBench(record), record, 20.0)
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    next(line for line in lines if line.get("kind", "") == kind).update(changed)
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(RecordError, match=r"a\.jsonl"):
        read_space(path)


def test_a_damaged_compressed_space_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b"{}" * 1000)
    # No block of compressed data begins with bits that are all set.
    for content in (b"no archive", whole[:-10], whole[:10] + b"\xff" * 10 + whole[20:]):
        path.write_bytes(content)
        with pytest.raises(RecordError, match=r"cannot read the recorded space .*a\.jsonl\.gz"):
            read_space(path)


PROGRAM = """
import os, sys, time
sys.path[:0] = {paths!r}
from pathlib import Path
from support.made_up_spaces import valley
from gemmlab.tuning.journal import Journal, JournaledBench
from gemmlab.tuning.replay import ReplayBench
from gemmlab.tuning.search import Search
from gemmlab.tuning.strategies import Halving, run_within_budget
class Slow(ReplayBench):
    def turn(self, place):
        time.sleep(0.005)
        return super().turn(place)
record = valley(turns=1)
with Journal(Path({path!r}), record.space, {header!r}) as journal:
    search = Search(record.space, JournaledBench(Slow(record), journal), 1e9)
    run_within_budget(Halving(3), search)
print(record.space.text(search.best().place))
"""


def program(path: Path) -> list[str]:
    paths = [str(Path(__file__).parents[2]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [sys.executable, "-c", PROGRAM.format(paths=paths, path=str(path), header=HEADER)]


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_search_goes_on_where_it_was(tmp_path: Path, blow: signal.Signals) -> None:
    path = tmp_path / "a.jsonl"
    with subprocess.Popen(program(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        while not path.exists() or path.read_bytes().count(b'"turn"') < 5:
            assert running.poll() is None
        running.send_signal(blow)
        running.wait(20)
    before = path.read_bytes()
    done = subprocess.run(program(path), capture_output=True, text=True, check=True, timeout=60)
    expected = searched(tmp_path / "whole.jsonl", ReplayBench(valley(turns=1)), valley(turns=1)).best()
    assert expected is not None
    assert done.stdout.strip() == valley(turns=1).space.text(expected.place)
    whole = before[: before.rfind(b"\n") + 1]
    assert path.read_bytes().startswith(whole)


def test_another_search_or_another_process_is_refused(tmp_path: Path) -> None:
    record = valley()
    with Journal(tmp_path / "a.jsonl", record.space, HEADER), pytest.raises(UsageError, match="another process"):
        Journal(tmp_path / "a.jsonl", record.space, HEADER)
    other: dict[str, Any] = {**HEADER, "problem": "128"}
    with pytest.raises(RecordError, match="its problem differs"):
        Journal(tmp_path / "a.jsonl", record.space, other)
    (tmp_path / "b.jsonl").write_text("[]\n")
    with pytest.raises(RecordError, match=r"no journal.*--fresh"):
        Journal(tmp_path / "b.jsonl", record.space, HEADER)


@pytest.mark.in_turns(20)
def test_a_fresh_journal_is_empty_unless_another_process_writes_it(tmp_path: Path) -> None:
    path, record = tmp_path / "a.jsonl", valley()
    searched(path, ReplayBench(record), record)
    before = path.read_bytes()
    with Journal(path, record.space, HEADER), pytest.raises(UsageError, match="another process"):
        Journal(path, record.space, HEADER, fresh=True)
    assert path.read_bytes() == before
    with Journal(path, record.space, HEADER, fresh=True) as journal:
        assert not journal.events
    assert path.read_bytes() == before[: before.find(b"\n") + 1]
    path.write_bytes(b"damaged\n")
    with Journal(path, record.space, HEADER, fresh=True) as journal:
        assert not journal.events


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"journal .*file.a\.jsonl cannot be written: "):
        Journal(tmp_path / "file" / "a.jsonl", valley().space, HEADER)
