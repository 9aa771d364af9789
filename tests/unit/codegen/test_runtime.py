"""The runtime at its limits: workspaces that are taken or refused, threads that are not to be had."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab import gemm
from gemmlab.codegen import runtime as shared
from gemmlab.codegen.runtime import SLOTS, SLOTS_AT, Runtime
from support.exact import pair, slots, wrong_after


def test_more_callers_than_workspaces_all_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every workspace taken, a caller waits for one instead of failing."""
    wrong_after(0.01, 0, 1)
    runtime = shared.runtime()
    taken = [slot for slot, flag in enumerate(slots(runtime)) if flag == 0]
    monkeypatch.setattr(Runtime, "add_slot", lambda _self: False)
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 1
    a, b, expected = pair(4)
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(gemm, a, b) for _ in range(6)]
        time.sleep(0.05)
        assert not any(one.done() for one in waiting)
        runtime.word(SLOTS_AT + 16 * taken[0]).value = 0
        assert all(np.array_equal(one.result(timeout=20), expected) for one in waiting)
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 0


def test_workspaces_are_added_up_to_their_number_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "huge_pages", lambda _nbytes: 4096)
    runtime = Runtime()
    assert [runtime.add_slot() for _ in range(SLOTS)] == [True] * SLOTS
    assert not runtime.add_slot()
    assert slots(runtime) == [0] * SLOTS


def test_a_workspace_that_memory_lacks_is_a_memory_error_and_the_library_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong_after(0.01, 0, 2)
    runtime = shared.runtime()
    taken = [slot for slot, flag in enumerate(slots(runtime)) if flag == 0]
    for slot in taken:
        runtime.word(SLOTS_AT + 16 * slot).value = 1
    a, b, expected = pair(5)
    try:
        with monkeypatch.context() as patch:

            def full(*_args: object, **_options: object) -> Any:
                raise OSError(12, "Cannot allocate memory")

            patch.setattr(mmap, "mmap", full)
            with pytest.raises(MemoryError, match=r"for a workspace.*Cannot allocate memory"):
                gemm(a, b)
    finally:
        for slot in taken:
            runtime.word(SLOTS_AT + 16 * slot).value = 0
    assert np.array_equal(gemm(a, b), expected)


def test_threads_that_the_system_refuses_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, expected = pair(6)
    gemm(a, b)
    runtime = shared.runtime()
    pages: list[int] = []
    really = shared.huge_pages

    def counted(nbytes: int) -> int:
        pages.append(nbytes)
        return really(nbytes)

    monkeypatch.setattr("_thread.start_new_thread", _refuse)
    monkeypatch.setattr(shared, "huge_pages", counted)
    before = runtime.workers
    for _ in range(5):
        assert np.array_equal(gemm(a, b, threads=before + 3), expected)
    assert runtime.workers == before
    assert pages.count(runtime.workspace_bytes) <= 1, "a workspace was thrown away each time"


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc here")
def test_no_page_of_a_workspace_exists_before_it_is_written_to() -> None:
    """Whoever writes first decides on which node a page lies: the worker, not the thread that starts it."""
    address = shared.huge_pages(8 << 20)
    assert _resident(address) == 0
    ctypes.c_char.from_address(address).value = b"x"
    assert _resident(address) > 0


def _resident(address: int) -> int:
    """Kilobytes in memory of the mapping around an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("Rss:"):
            return int(line.split()[1])
    raise AssertionError(f"no mapping at {address:#x}")


def _refuse(*_args: object) -> int:
    raise RuntimeError("can't start new thread")


def test_workers_are_bounded() -> None:
    a, b, expected = pair(7)
    assert np.array_equal(gemm(a, b, threads=1000), expected)
    assert shared.runtime().workers <= 4 * (os.cpu_count() or 1)
