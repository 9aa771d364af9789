"""Zeros and NaN in reductions of bulk operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gemmlab.emulator.asynchronous.combining import combined, number_of

CASES = [
    ("ADD", "F64", np.uint64, 0x7FF8000000000005, 0x3FF0000000000000, 0x7FF8000000000005),
    ("ADD", "F64", np.uint64, 0x7FF8000000000005, 0xFFF8000000000009, 0xFFF8000000000009),
    ("ADD", "F64", np.uint64, 0x7FF0000000000001, 0x3FF0000000000000, 0x7FF0000000000001),
    ("ADD", "F64", np.uint64, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000),
    ("ADD", "F64", np.uint64, 0xFFF0000000000000, 0x7FF0000000000000, 0xFFF8000000000000),
    ("ADD", "F32", np.uint32, 0x7FC00005, 0x3F800000, 0x7FFFFFFF),
    ("MIN", "F16", np.uint16, 0x7E05, 0xFE09, 0x7FFF),
    ("MIN", "F16", np.uint16, 0x7E05, 0x3C00, 0x3C00),
    ("MIN", "F16", np.uint16, 0x0000, 0x8000, 0x8000),
    ("MAX", "F16", np.uint16, 0x8000, 0x0000, 0x0000),
    ("MAX", "F16", np.uint16, 0x8000, 0x8000, 0x8000),
    ("MIN", "BF16", np.uint16, 0x0000, 0x8000, 0x8000),
    ("MAX", "BF16", np.uint16, 0x7FC1, 0x7FC2, 0x7FFF),
]


@pytest.mark.parametrize(("name", "kind", "dtype", "old", "new", "result"), CASES)
def test_zeros_and_nan(name: str, kind: str, dtype: Any, old: int, new: int, result: int) -> None:
    there, come = (np.full(9, value, dtype).view(np.uint8) for value in (old, new))
    assert set(combined(number_of(name, kind), there, come).view(dtype).tolist()) == {result}
