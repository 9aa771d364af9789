"""Samples of a profile: read from ncu's source page, joined with code by its instructions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gemmlab.analysis.listing.code import Code, Row
from gemmlab.analysis.listing.kernel_listing import static_listing
from gemmlab.analysis.listing.samples import by_address, read_samples, samples_for
from gemmlab.core.errors import ProfilerError, UsageError
from support.sass_corpus import written

PAGE = """==PROF== Connected
"#","Address","Source","Warp Stall Sampling (All Samples)","# Instructions Executed"
"1","0x7f00","      MOV R1, c[0x0][0x28] ","1","64"
"2","0x7f10","@P0 LDG.E R2, desc[UR4][R4.64]","1,200","64"
"3","0x7f20","EXIT","","64"
"""


def code(*lines: str) -> Code:
    found = tuple(Row(i, (), 0, 0, (), 0, 0, None) for i in written(*lines).instructions)
    return Code("f", {}, "sm_90", "by hand", "0" * 64, "f", 8, found, (), ())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "source.csv"
    path.write_text(PAGE)
    return path


def test_samples_are_joined_by_place(page: Path) -> None:
    (samples,) = read_samples(page)
    ours = code("MOV R1, c[0x0][0x28]", "@P0 LDG.E R2, desc[UR4][R4.64]", "EXIT")
    assert by_address(samples, ours) == {0: 1.0, 16: 1200.0}
    listing = static_listing(ours, samples=[samples])
    share = listing.column("sampled")
    assert share is not None
    assert share.values[16] == pytest.approx(100 * 1200 / 1201)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_a_report_is_printed_by_the_profiler(page: Path, tmp_path: Path) -> None:
    report, ncu = tmp_path / "own.ncu-rep", tmp_path / "ncu"
    report.write_bytes(b"")
    ncu.write_text(f'#!/bin/sh\n[ "$1 $3 $4 $5" = "--import --page source --csv" ] && cat {page}\n')
    ncu.chmod(0o755)
    (samples,) = read_samples(report, str(ncu))
    assert (samples.origin, len(samples.rows)) == ("own.ncu-rep", 3)
    with pytest.raises(ProfilerError, match="no Nsight Compute here"):
        read_samples(report, "no_such_ncu")
    with pytest.raises(UsageError, match="there is no such file"):
        read_samples(tmp_path / "missing.ncu-rep", str(ncu))


def test_a_profile_of_other_code_is_refused(page: Path) -> None:
    (samples,) = read_samples(page)
    other = code("MOV R1, c[0x0][0x28]", "FFMA R1, R2, R3, R4", "EXIT")
    with pytest.raises(UsageError, match=r"other code than f for sm_90: its instruction 1 is '@P0 LDG"):
        static_listing(other, samples=[samples])
    longer = code("MOV R1, c[0x0][0x28]", "@P0 LDG.E R2, desc[UR4][R4.64]", "EXIT", "NOP")
    with pytest.raises(UsageError, match="it has 3 instructions, not 4"):
        by_address(samples, longer)
    assert samples_for([samples], other) is None


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '"Source","Samples"\n'])
def test_a_file_without_samples_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match="ncu --import"):
        read_samples(path)
    with pytest.raises(UsageError, match="cannot read the profile"):
        read_samples(tmp_path / "missing.csv")
