"""The machine code in the package is that of the sources, and as small as the pages say."""

from __future__ import annotations

import pytest

import gpu_code
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.toolchain import code_archive

MOST_BYTES = 4_500_000
"""The bound on the archive, which is part of every clone; docs/installing.md states its size."""


@pytest.mark.in_turns(20)
def test_the_code_is_that_of_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(code_archive.SWITCH, raising=False)
    stale = gpu_code.stale()
    assert not stale, f"run `python makers/gpu_code.py`: no machine code for {len(stale)} programs, as {stale[0]}"


def test_it_has_what_the_library_chooses_from() -> None:
    wanted = {(job.kernel, job.program.entry) for job in gpu_code.wanted()}
    for entry in shipped_table().entries:
        assert {kernel for kernel, _ in wanted} >= {entry.kernel}
    assert sum(one["instances"] for one in code_archive.contents().values()) == len(wanted)


def test_it_is_small() -> None:
    assert sum(one["bytes"] for one in code_archive.contents().values()) <= MOST_BYTES
