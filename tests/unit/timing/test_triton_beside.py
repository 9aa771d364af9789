"""The times of Triton's products beside ours: choice, turns, budget, record and page, without a GPU and Triton."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import triton_beside
import triton_contestants
from blocks.beside_triton import BLOCKS, beside_triton
from gemmlab.core.records import load_record
from triton_contestants import Contestant


class Played:
    """Contestants whose calls take known times; the clock goes on by what is timed."""

    def __init__(self) -> None:
        self.now, self.n, self.log = 0.0, 0, list[str]()
        names = {
            "gemmlab:float32": {"": 2.0},
            "gemmlab:bf16x6": {"": 3.0},
            "triton:tf32x3": {"small": 9.0, "large": 6.0},
            "triton:bf16x6": {"own": -1.0, "by hand": 4.5},
        }
        self.contestants = [
            Contestant(
                name,
                {way: self.way(f"{name} {way}", us) for way, us in ways.items()},
                {"library": name.partition(":")[0], "version": "1.2"},
            )
            for name, ways in names.items()
        ]

    def way(self, name: str, us: float) -> Any:
        def call() -> float:
            if us < 0:
                raise ValueError("at 3:1:\n  tl.dot(x, y)\n  ^\nno such input_precision")
            self.log.append(name)
            return us * self.n

        return call

    def device(self) -> dict[str, Any]:
        return {"id": "cuda:0", "name": "a GPU", "facts": {}}

    def prepare(self, n: int) -> None:
        self.n = n

    def time(self, call: Any, repeats: int) -> list[float]:
        times = [call() for _ in range(repeats)]
        self.now += sum(times)
        return times

    def errors(self, call: Any) -> dict[str, list[float]]:
        return {"normal": [call() / self.n, 0.5], "uniform in 0 .. 1": [7.0, 1.5]}


@pytest.fixture
def field(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    return found


def test_the_fastest_configuration_of_each_takes_turns(field: Played, tmp_path: Path) -> None:
    record = triton_beside.measured(field, [256, 512], 7, 1e9, tmp_path / "t.json")
    assert load_record(tmp_path / "t.json.gz") == record
    assert {(r.contestant, r.label, r.facts["configuration"], r.median_us) for r in record.results} == {
        (name, f"{n}x{n}x{n}", best, us * n)
        for n in (256, 512)
        for name, best, us in (
            ("gemmlab:float32", "", 2.0), ("gemmlab:bf16x6", "", 3.0), ("triton:tf32x3", "large", 6.0),
            ("triton:bf16x6", "by hand", 4.5),
        )
    }  # fmt: skip
    assert all([sample.round for sample in result.samples] == list(range(7)) for result in record.results)
    refused = record.results[3].facts["tried"]["own"]
    assert refused == "ValueError: no such input_precision"
    # The first configuration is slow, but not so slow that it is not tried again; the errors are those of the best.
    assert field.log.count("triton:tf32x3 small") == 2 * (2 + triton_beside.CALLS)
    assert record.results[2].facts["errors"]["normal"] == [6.0, 0.5]
    turns = field.log[-28 * triton_beside.CALLS :: triton_beside.CALLS]
    assert all(len(set(turns[at : at + 4])) == 4 for at in range(0, 28, 4))
    assert len({tuple(turns[at : at + 4]) for at in range(0, 28, 4)}) > 1


def test_time_that_is_over_leaves_a_record_of_what_there_was(field: Played, tmp_path: Path) -> None:
    record = triton_beside.measured(field, [256, 512, 1024], 1000, 60_000.0, tmp_path / "t.json")
    assert load_record(tmp_path / "t.json.gz") == record
    labels = [result.label for result in record.results]
    assert labels[0] == "256x256x256"
    assert "1024x1024x1024" not in labels
    assert record.notes[-1].startswith("no time was left for")
    assert all(triton_beside.FEWEST_ROUNDS <= len(result.samples) < 1000 for result in record.results)
    assert len({len(result.samples) for result in record.results if result.label == labels[0]}) == 1


def test_one_that_does_not_run_is_left_out_with_the_reason(field: Played, tmp_path: Path) -> None:
    field.contestants = [field.contestants[0], Contestant("triton:x", {"own": field.way("x", -1.0)})]
    record = triton_beside.measured(field, [256], 3, 1e9, tmp_path / "t.json")
    assert [result.contestant for result in record.results] == ["gemmlab:float32"]
    assert record.notes == ("triton:x does not run at 256: ValueError: no such input_precision",)


def test_the_page_shows_times_errors_and_ratios(field: Played, tmp_path: Path) -> None:
    text = beside_triton(triton_beside.measured(field, [256], 4, 1e9, tmp_path / "t.json"))
    assert (
        "| 256 | `triton:bf16x6` | 1,152.0 | 0.0 | 0.0 | 4.50 / 0.500 | 7.00 / 1.500 | by hand |" in text.splitlines()
    )
    # Triton's bf16x6 is the faster one there: 4.5 / 2 and 4.5 / 3.
    assert "`gemmlab:float32` beside `triton:tf32x3` or `triton:bf16x6`, times as fast: 2.25" in text
    assert "`gemmlab:bf16x6` beside `triton:bf16x6`, times as fast: 1.50 (1.50-1.50) at 256." in text
    assert "gemmlab 1.2, triton 1.2; a GPU" in text


def test_the_block_says_so_where_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blocks.records.load", lambda _name: None)
    assert BLOCKS["float32-triton"]() == ("*Not measured yet: there is no record benchmarks/results/h200/triton.json.*")


@pytest.mark.parametrize("missing", ["torch", "triton"])
def test_it_says_what_is_not_installed(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(triton_contestants, "CudaDevice", lambda *_arguments: None)
    monkeypatch.setattr(triton_contestants, "find_spec", lambda name: None if name == missing else object())
    assert triton_beside.main([str(tmp_path / "t.json")]) == 2
    assert f"{missing} is not installed here: pip install {missing}" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize("sizes", ["1000", "1024,x", "0", ""])
def test_sizes_are_whole_tiles(sizes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert triton_beside.main([str(tmp_path / "t.json"), "--sizes", sizes]) == 2
    assert "a multiple of 256" in capsys.readouterr().err


def test_tiles_divide_the_sizes_that_are_allowed() -> None:
    assert all(triton_beside.WHOLE % extent == 0 for tile in triton_contestants.TILES for extent in tile[:3])
