"""Bugs of asynchronous kernels that show far from their cause: the cause comes first, with names, lines and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import hazards, line_of

from gemmlab.core.hazard import Hazard
from gemmlab.emulator.asynchronous.engine import LANDING

FILE = "causes.cu"
IN = np.arange(256, dtype=np.float32)
CLUSTERS = {"one_block", "no_cluster_sync"}


@dataclass(frozen=True)
class Cause:
    """The first finding expected of a kernel with a bug: its kind, its lines by their marks, and its words."""

    name: str
    kind: str
    line: str
    other: str
    words: str
    mentions: tuple[tuple[str, str], ...] = ()
    """Words and line of further places."""

    def __str__(self) -> str:
        return self.name


CAUSES = [
    Cause(
        "run_ahead", "mbarrier", "LEFT_BEHIND", "AHEAD",
        "warps 1 to 3 wait for phase 0 of the mbarrier full[0], which is over: it is in phase 4, of the same parity 0;"
        " thread 0 did not wait for them before arriving again",
    ),
    Cause(
        "never_empty", "mbarrier", "NEVER_EMPTY", "",
        "the mbarrier empty[0] (phase 0, parity 0) lacks 96 of 96 arrivals; it waits for parity 0; nobody has arrived"
        " yet, and no line of the kernel arrives there",
    ),
    Cause(
        "some_never", "mbarrier", "SOME_EMPTY", "SOME_ARRIVE",
        "the mbarrier empty[0] (phase 0, parity 0) lacks 3 of 96 arrivals; it waits for parity 0; threads 37, 69 and"
        " 101 have not arrived, unlike others of their warps",
    ),
    Cause(
        "wrong_stage", "mbarrier", "WRONG_EMPTY", "ONE_STAGE",
        "the mbarrier empty[1] (phase 0, parity 0) lacks 96 of 96 arrivals; it waits for parity 0; nobody has arrived",
        (("threads arrive at the mbarrier empty[0]", "ONE_STAGE"),),
    ),
    Cause(
        "ends_early", "mbarrier", "NO_MORE", "LAST_FILL",
        "the mbarrier full[0] (phase 3, parity 1) lacks 1 of 1 arrival; they wait for parity 1; thread 0 arrived in the"
        " phase before, and ended then",
    ),
    Cause(
        "expects_more", "mbarrier", "MORE", "SECOND_HALF",
        "the mbarrier full[1] is told to expect 1,024 bytes in phase 0, and 512 came: those who wait for it never go",
        (
            ("a copy brings 256 bytes", "FIRST_HALF"), ("a copy brings 256 bytes", "SECOND_HALF"),
            ("they wait", "WAITS"),
        ),
    ),
    Cause(
        "expects_less", "mbarrier", "LESS", "RIGHT_HALF",
        "the mbarrier full[1] is told to expect 256 bytes in phase 0, and the copies of this phase bring 512",
        (("a copy brings 256 bytes", "LEFT_HALF"), ("a copy brings 256 bytes", "RIGHT_HALF")),
    ),
    Cause(
        "one_block", "mbarrier", "BOTH_EXPECT", "OWN",
        "the mbarrier full[0] of block 1 of the cluster is told to expect 1,024 bytes in phase 0, and 512 came",
        (("a copy brings 512 bytes", "OWN"), ("a copy goes to block 0 of the cluster and not to this one", "TO_ONE")),
    ),
    Cause("no_cluster_sync", "race", "OWN_READ", "FAR_WRITE", "cluster.sync() (barrier.cluster) is missing"),
]  # fmt: skip


@cache
def found(kernel: str) -> list[Hazard]:
    """Return the hazards of a kernel of `causes.cu`."""
    name = kernel.rpartition("_")[0]
    out = np.zeros(256, np.float32)
    args = [out] if name == "no_cluster_sync" else [IN, out]
    return hazards(FILE, kernel, 128, *args, grid=2 if name in CLUSTERS else 1)


@pytest.mark.parametrize("cause", CAUSES, ids=str)
@pytest.mark.sampled(len(CAUSES) // 3)
def test_the_cause_comes_first_with_its_lines(cause: Cause) -> None:
    every = found(f"{cause.name}_bad")
    said = [hazard.explain() for hazard in every]
    first = next(hazard for hazard in every if own_line(hazard) == line_of(FILE, cause.line))
    assert every[0].kind == cause.kind, said
    assert first is every[0] or cause.kind == "race", said
    assert cause.words in first.message, said
    if cause.other:
        assert other_line(first) == line_of(FILE, cause.other), said
    lines = [(each.words, each.line) for each in first.mentions if each.file.endswith(FILE)]
    lines += [(each.words, called(each.called_from)) for each in first.mentions if not each.file.endswith(FILE)]
    for words, mark in cause.mentions:
        assert (words, line_of(FILE, mark)) in lines, said


@pytest.mark.parametrize("seed", ["", "4"])
@pytest.mark.parametrize("name", [*(f"{cause}_good" for cause in CAUSES), "copies_first"])
@pytest.mark.sampled(len(CAUSES) // 3)
def test_the_right_kernel_is_silent(name: str, seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LANDING, seed)
    assert not [hazard.explain() for hazard in found.__wrapped__(name)]


def test_those_who_wait_for_others_come_after_the_cause() -> None:
    cause, follows, stopped = found("never_empty_bad")
    assert own_line(cause) == line_of(FILE, "NEVER_EMPTY")
    assert own_line(follows) == line_of(FILE, "NEVER_FULL")
    assert "thread 0 arrived in the phase before and not in this one" in follows.message
    assert [each.words for each in follows.mentions] == ["warp 0 waits for the mbarrier empty[0]"]
    assert stopped.kind == "deadlock"


def test_a_cluster_that_waits_for_a_copy_is_named_after_the_copy() -> None:
    kinds = [hazard.kind for hazard in found("one_block_bad")]
    assert kinds == ["mbarrier", "cluster", "deadlock"]
    barrier = found("one_block_bad")[1]
    assert "the cluster's barrier lacks warps 0 to 3 of block 1" in barrier.message
    assert [each.words for each in barrier.mentions] == [
        "warp 0 of block 1 waits for the mbarrier full[0] of block 1 of the cluster"
    ]


def test_a_race_comes_before_the_end_of_a_block() -> None:
    assert [hazard.kind for hazard in found("no_cluster_sync_bad")] == ["race", "race", "cluster", "cluster"]
    assert {(hazard.array, hazard.owner) for hazard in found("no_cluster_sync_bad")[:3]} == {
        ("memory", ""), ("memory", "block 0 of the cluster"),
    }  # fmt: skip


def test_a_copy_that_nothing_expected_says_so_at_the_end() -> None:
    last = found("expects_less_bad")[-1]
    assert last.kind == "async copy"
    assert "the mbarrier full[1] was not told to expect its 256 bytes" in last.message


def test_inline_ptx_shows_the_line_of_its_caller() -> None:
    first = found("run_ahead_bad")[0]
    assert "PTX" not in first.called_text
    assert first.called_text.startswith("wait(shared_address(&full[stage])")
    assert first.explain().startswith(f"mbarrier at {FILE}:{line_of(FILE, 'LEFT_BEHIND')}, from {FILE}:")
    assert " `wait(shared_address(&full[stage])" in first.explain()
    assert "(in asynchronous.cuh:" in first.explain()
    assert "asm volatile" not in first.explain()


def own_line(hazard: Hazard) -> int:
    """Return the innermost line of the kernels' own file at which a hazard is."""
    return hazard.line if hazard.file.endswith(FILE) else called(hazard.called_from)


def other_line(hazard: Hazard) -> int:
    """Return the same of the hazard's other line."""
    here = (hazard.other_file or hazard.file).endswith(FILE)
    return hazard.other_line if here else called(hazard.other_called_from)


def called(calls: str) -> int:
    """Return the line of the innermost call."""
    return int(calls.split(",", maxsplit=1)[0].rpartition(":")[2])
