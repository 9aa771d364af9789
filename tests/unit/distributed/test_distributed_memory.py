"""A rank holds its shards, its part of C and the stated buffers, and nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from support.distributed_memory import CASES, measured
from support.ranks import on_ranks

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]
OTHER = 4 << 20
"""Bytes that the kernel's packed blocks, threads and messages' threads may take."""
M_MMAP_THRESHOLD = -3
"""glibc's number for the least size of memory that it gets from, and returns to, the system by itself."""
REFERENCES, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def resident(name: str) -> int:
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def peak(call: Callable[[], Any]) -> int:
    """The most memory that the process had during a call, without what it had before; Linux counts it."""
    REFERENCES.write_text("5")
    before = resident("VmRSS:")
    call()
    return resident("VmHWM:") - before


def on_rank(rank: int) -> Any:
    # Else malloc keeps what is freed, and the process's memory is not that of its tensors.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 18)
    return measured(rank, peak)


@pytest.mark.in_turns(20)
@pytest.mark.skipif(not REFERENCES.exists(), reason="only Linux counts a process's peak of memory")
def test_peak_of_memory_is_the_part_of_c_and_the_stated_buffers() -> None:
    answers = on_ranks(4, on_rank)
    assert all(isinstance(answer, list) for answer in answers), next(x for x in answers if not isinstance(x, list))
    for answer in answers:
        assert len(answer) == len(CASES)
        for case, most, stated in answer:
            assert most <= stated + OTHER, (case, most / 2**20, stated / 2**20)
            # A test that measured nothing would pass, too.
            assert most >= 0.6 * stated, (case, most / 2**20, stated / 2**20)
