"""A profile of Nsight Compute beside the predicted shares: from its report to the kernel page."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.analysis.explanation import explain
from gemmlab.analysis.listing.figure_columns import MEASURED, PREDICTED, Column, agreement
from gemmlab.analysis.listing.kernel_listing import explained_listing
from gemmlab.analysis.subject import machine
from gemmlab.cli.app import build_app
from gemmlab.kernels.by_name import kernel_named
from support.cuda_source import needs_compiler
from support.paths import DATA

RECORDED = DATA / "ncu_source.csv"
"""A page as ncu prints it, of other code: its head is that of a real export."""


def exported(folder: Path) -> Path:
    """Write the source page of a profile of `naive`: a launch of another kernel first, then naive's own code."""
    arch, model = machine("sm_90", "H200")
    listing = explained_listing(explain(kernel_named("naive"), arch, model, {}, sizes="64"))
    first = RECORDED.read_text().splitlines()[:7]
    names = next(csv.reader([first[2]]))
    path = folder / "source.csv"
    with path.open("w", newline="") as file:
        file.write("\n".join(first) + "\n")
        page = csv.writer(file, quoting=csv.QUOTE_ALL)
        page.writerow(["Kernel Name", "naive"])
        page.writerow(names)
        for place, row in enumerate(listing.code.rows):
            cells = dict.fromkeys(names, "0") | {"#": str(place), "Address": hex(0x7F3A00002000 + 16 * place)}
            cells |= {"Source": f"      {row.instruction.text} "}
            hot = row.instruction.opcode in ("LDG", "FFMA")
            cells |= {"Warp Stall Sampling (All Samples)": "1,100" if hot else "10"}
            page.writerow([cells[name] for name in names])
    return path


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_a_report_stands_beside_the_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, report, ncu = exported(tmp_path), tmp_path / "prof.ncu-rep", tmp_path / "ncu"
    report.write_bytes(b"")
    ncu.write_text(f'#!/bin/sh\n[ "$1 $3 $4 $5" = "--import --page source --csv" ] && cat {page}\n')
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for profile in (report, page):
        out = tmp_path / "page.html"
        ended = CliRunner().invoke(
            build_app(), ["explain", "naive", "--sizes", "64", "--html", str(out), "--profile", str(profile)]
        )
        assert ended.exit_code == 0, ended.output
        found = re.search(
            r"see (\d+) % of the time at the same instructions, (\d+) % at the same lines", out.read_text()
        )
        assert found is not None
        assert 0 < int(found[1]) <= int(found[2]) <= 100


def test_each_place_counts_with_its_smaller_share() -> None:
    one = Column("time", "", "", PREDICTED, {0: 50.0, 16: 30.0, 32: 20.0})
    two = Column("sampled", "", "", MEASURED, {0: 20.0, 16: 60.0, 48: 20.0})
    assert agreement(one, two, [[0], [16], [32], [48]]) == 50.0
    assert agreement(one, two, [[0, 16], [32, 48]]) == 100.0
