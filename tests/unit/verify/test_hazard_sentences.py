"""One plain sentence on each kind of hazard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmlab.core.hazard import BARRIER, OUTSIDE, UNWRITTEN, Hazard
from gemmlab.verify.hazard_sentences import sentence_on

ENDED = "the barrier was passed without threads that had already ended"
DYNAMIC = "more[] is dynamic shared memory"
SOURCE = """
#include "four.cuh"
__global__ void mine(const float* B, int lda, int ldb)
{
    __shared__ float As[16][8]; extern __shared__ float more[];
    As[x][y] = B[y * lda + x] + B[y * ldb + x];
    b = B[y * lda + x];
}
"""


def hazard(kind: str, line: int, message: str, array: str = "", space: str = "global") -> Hazard:
    return Hazard(kind, "mine", (0, 0, 0), (0, 0, 0), 8, "mine.cu", line, message=message, array=array, space=space)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            hazard(OUTSIDE, 6, "4-byte read of shared memory at byte 512", "As", "shared"),
            "As, declared as As[16][8], is read outside its bounds at mine.cu:6",
        ),
        (
            hazard(OUTSIDE, 3, "4-byte write of global memory at byte 8", "C"),
            "C is written outside its bounds at mine.cu:3",
        ),
        (
            hazard(OUTSIDE, 7, "4-byte read of global memory at byte 8", "B"),
            "B is read outside its bounds at mine.cu:7, which indexes B without ldb",
        ),
        (
            hazard(UNWRITTEN, 6, "4-byte read of shared memory that nothing has written", "As", "shared"),
            "As is read at mine.cu:6 where nothing has written it",
        ),
        (
            hazard("misaligned", 6, "16-byte read of global memory at an address that is no multiple of 16", "B"),
            "B is read at mine.cu:6, at an address that is no multiple of the access's width",
        ),
        (
            hazard(OUTSIDE, 7, "4-byte read of shared memory at byte 0 of 0", "more", "shared"),
            f"more is read outside its bounds at mine.cu:7: {DYNAMIC}: state its bytes as smem_bytes",
        ),
        (
            hazard(OUTSIDE, 7, "4-byte read of shared memory at byte 80 of 64", "more", "shared"),
            f"more is read outside its bounds at mine.cu:7: {DYNAMIC}: smem_bytes is too small, or an index too large",
        ),
        (hazard("trap", 4, "the kernel stopped itself"), "the kernel stopped itself, at mine.cu:4"),
        (
            hazard("async copy", 6, "4-byte read of shared memory (LDS); no wait came before", "As", "shared"),
            "4-byte read of shared memory, at mine.cu:6, array As",
        ),
        (
            hazard(BARRIER, 5, "barrier 16: a block has barriers 0 to 15"),
            "barrier 16: a block has barriers 0 to 15, at mine.cu:5",
        ),
    ],
)
def test_a_hazard_is_told_in_one_sentence(found: Hazard, sentence: str) -> None:
    assert sentence_on(found.kind, [[found]], lambda _: SOURCE) == sentence


def test_the_lines_where_threads_end_are_told_from_those_of_barriers() -> None:
    end, *barriers = hazard(BARRIER, 4, ENDED), hazard(BARRIER, 9, ENDED), hazard(BARRIER, 11, ENDED)
    barriers = [replace(one, text="__syncthreads();") for one in barriers]
    told = sentence_on(BARRIER, [[barriers[0], end, barriers[1]]], lambda _: SOURCE)
    assert "(threads end at mine.cu:4; barriers at mine.cu:9 and mine.cu:11)" in told
    told = sentence_on(BARRIER, [[barriers[0], end]], lambda _: SOURCE)
    assert "(threads end at mine.cu:4; barrier at mine.cu:9)" in told


def test_threads_that_end_before_a_barrier_are_told_with_both_places() -> None:
    both = [hazard(BARRIER, 4, ENDED), hazard(BARRIER, 9, ENDED)]
    told = sentence_on(BARRIER, [both, both], lambda _: SOURCE)
    assert told == (
        "some threads of the block end before a barrier that the others reach (mine.cu:4 and mine.cu:9): all have to "
        "reach it"
    )
