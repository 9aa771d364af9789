"""Tensor copies of types that change values: every recorded word of a GPU."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from tensor_rounding_probe import RECORD, Case, cases, values


def test_inputs_have_edges_and_random_bits() -> None:
    words = values(0)
    assert words.size == 1 << 20
    assert {0x3F801000, 0xBF803000, 0x00000001, 0x7F800000, 0x7F801000} <= set(words[:20000].tolist())
    assert not np.array_equal(words, values(1))


@pytest.mark.in_turns(20)
@pytest.mark.skipif(not RECORD.exists(), reason="no record of a GPU's copies: makers/tensor_rounding_probe.py on a GPU")
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
@pytest.mark.sampled(3)
def test_recorded_words_of_a_gpu(case: Case) -> None:
    with np.load(RECORD) as record:
        recorded = record[case.name] ^ case.guess()
    found = case.words("emulated:sm_90")
    wrong = np.flatnonzero(found != recorded)
    assert not wrong.size, [(hex(values(0)[at]), hex(found[at]), hex(recorded[at])) for at in wrong[:8]]
