"""The wheel with all machine code stays within its bound, which is checked before anyone compiles it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import hatch_build
import pytest

from gemmlab.precompile.shipping import shipped_jobs
from gemmlab.toolchain import code_archive
from gemmlab.toolchain.build_cuda import ship
from support.cuda_source import needs_compiler

MEAN_BYTES = {"sm_80": 26_300, "sm_89": 26_100, "sm_90": 40_300, "sm_90a": 79_600}
"""Mean size of an instance's file, as `make wheel` wrote them; those for sm_90 and sm_90a have their PTX."""
OTHER_BYTES = 2_500_000
"""Everything but machine code, with the directory of the archive."""
SAMPLE = {"sm_80": 27_000, "sm_90": 41_000}
"""Bounds on one file of `conflict_free`; if it exceeds them, the means above are no longer true."""


def test_the_planned_wheel_is_within_its_bound() -> None:
    planned = Counter(job.program.target for job in shipped_jobs())
    assert planned.keys() == MEAN_BYTES.keys()
    code = sum(MEAN_BYTES[arch] * count for arch, count in planned.items())
    archive = sum(one["bytes"] for one in code_archive.contents().values())
    whole = code + archive + OTHER_BYTES
    assert whole <= hatch_build.MOST_BYTES, f"a wheel with {dict(planned)} instances has about {whole / 1e6:.1f} MB"


@needs_compiler
@pytest.mark.parametrize("arch", SAMPLE)
def test_a_file_is_as_small_as_the_estimate_says(arch: str, tmp_path: Path) -> None:
    job = next(job for job in shipped_jobs(["conflict_free"], [arch]))
    assert ship(job.program, tmp_path).stat().st_size <= SAMPLE[arch]
