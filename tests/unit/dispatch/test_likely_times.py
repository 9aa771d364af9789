"""The maker of times for the trees that correct estimates: its file, and that it goes on where it ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import likely_samples
import likely_times
from gemmlab.dispatch.correction import LIKELY
from gemmlab.ops.gemm_problem import GemmProblem
from quick_times import Trial

EMULATED = ("--device", "emulated:sm_90a")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[GemmProblem, int]]:
    """The products that are timed, with the number of trials; a trial's time is its place. Nothing is compiled."""
    found: list[tuple[GemmProblem, int]] = []

    def times_at(_: object, problem: GemmProblem, trials: Sequence[Trial]) -> dict[tuple[Any, ...], float]:
        found.append((problem, len(trials)))
        return {trial.key: float(1 + place) for place, trial in enumerate(trials)}

    monkeypatch.setattr(likely_times, "times_at", times_at)
    monkeypatch.setattr(likely_times, "prebuild", lambda *_: None)
    monkeypatch.setattr(likely_times, "QuickTimes", lambda *_: None)
    return found


def test_each_product_is_timed_once_and_comes_back(asked: list[tuple[GemmProblem, int]], tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl.gz"
    assert likely_times.main([str(file), "--random", "5:3", "--seconds", "0", *EMULATED]) == 0
    assert asked == []
    for _ in range(2):
        assert likely_times.main([str(file), "--random", "5:3", *EMULATED]) == 0
        assert len(asked) == 3
    timed = list(likely_samples.timed_products(file))
    assert [problem for problem, _ in timed] == [problem for problem, _ in asked]
    assert [len(times) for _, times in timed] == [count for _, count in asked]
    assert max(count for _, count in asked) == LIKELY
    samples = likely_samples.samples(file)
    assert samples.us.tolist() == [us for _, times in timed for _, _, us in times]
    # The first candidate has the least estimate, and the least time here.
    assert samples.regrets(0 * samples.us).tolist() == [1.0] * 3


def test_candidates_within_a_factor_are_the_first_ones(asked: list[tuple[GemmProblem, int]], tmp_path: Path) -> None:
    for within in ("1.0", "1.1", "9"):
        likely_times.main([str(tmp_path / within), "--random", "5:1", "--within", within, *EMULATED])
    counts = [count for _, count in asked]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[2] > 5


def test_a_file_of_other_products_is_refused(
    asked: list[tuple[GemmProblem, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.jsonl.gz"
    likely_times.main([str(file), "--random", "5:1", *EMULATED])
    assert likely_times.main([str(file), "--random", "6:1", *EMULATED]) == 2
    assert "has 5:1, --within None; use another file" in capsys.readouterr().err
    file.write_bytes(b"no archive")
    assert likely_times.main([str(file), "--random", "5:1", *EMULATED]) == 2
    assert "cannot be read as gemmlab.likely/1" in capsys.readouterr().err
    assert likely_times.main([str(tmp_path / "new"), "--random", "five", *EMULATED]) == 2
    assert "write SEED:COUNT" in capsys.readouterr().err
    assert len(asked) == 1
