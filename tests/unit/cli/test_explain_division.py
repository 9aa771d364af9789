"""`gemmlab explain threaded`: how threads divide C, as a drawing, a list, JSON and CSV."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from gemmlab.cli.app import build_app

SIZE = ("--sizes", "1000x2000x512", "--threads", "6")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


def test_the_drawing_has_every_job_in_its_place() -> None:
    result = run("threaded", *SIZE)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "threaded at 1000x2000x512 on 6 threads of a CPU" in said
    assert "6 of 6 threads take 6 jobs" in said
    assert "Each thread packs the part of B that it reads." in said
    assert all(f"job {job}" in said for job in range(6))


def test_the_document_has_the_rectangles_and_so_has_the_table() -> None:
    (found,) = json.loads(run("threaded", *SIZE, "--json").stdout)["kernels"]
    division = found["division"]
    jobs = division["jobs"]
    assert (found["kernel"], found["size"], division["threads"]) == ("threaded", "1000x2000x512", 6)
    assert len(jobs) == division["jobs_down"] * division["jobs_across"] == 6
    assert sum(job["rows"] * job["cols"] for job in jobs) == 1000 * 2000
    lines = run("threaded", *SIZE, "--csv").stdout.splitlines()
    assert (lines[0], len(lines)) == ("job,row,rows,col,cols", 7)


@pytest.mark.in_turns(20)
def test_packing_together_and_small_products_are_told() -> None:
    shared = " ".join(run("threaded", "--sizes", "4096x256x4096:nt", "--threads", "8").stdout.split())
    assert "All threads pack B together" in shared
    assert "for so little work 8 threads are not faster" in run("threaded", "--sizes", "32", "--threads", "8").stdout
    assert "One thread computes all of C." in run("threaded", "--sizes", "512", "--threads", "1").stdout
    assert "The result is empty." in run("threaded", "--sizes", "0x5x5", "--threads", "2").stdout


def test_many_rectangles_side_by_side_are_a_list() -> None:
    result = run("threaded", "--sizes", "64x60000x600", "--threads", "64")
    assert result.exit_code == 0
    assert "columns of C" in result.stdout
    assert "job 0" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("naive_ijk",), "division among threads it can show: threaded"),
        (("threaded", "--threads", "0"), "--threads 0: from 1 to"),
        (("threaded", "--threads", "two"), "--threads two: a number of threads"),
        (("threaded", "--sizes", "64,128"), "one size is explained at a time"),
        (("threaded", "naive", "--threads", "4"), "--threads: takes a thread count for one CPU kernel"),
        (("naive", "--threads", "4"), "--threads: name the .cu file"),
    ],
)
def test_what_cannot_be_divided_is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
