"""Views of memory that the host cannot read: nothing that shows them reads them."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.opaque_array import spread
from gemmlab.dispatch.request import Operand, request
from gemmlab.dispatch.shadows import packed

NOWHERE = 1 << 12
"""An address that no process may read."""


def test_views_of_memory_of_a_gpu_are_shown_by_their_description() -> None:
    view = packed((3, 4), NOWHERE)
    turned, one = view.swapaxes(0, 1)[np.newaxis], spread(view[:1], (3, 4))
    assert repr(view) == "<opaque float32 array, shape (3, 4), strides (16, 4)>"
    assert f"{turned}" == "<opaque float32 array, shape (1, 4, 3), strides (0, 4, 16)>"
    assert f"{one}" == "<opaque float32 array, shape (3, 4), strides (0, 4)>"


def test_a_traceback_with_its_variables_reads_no_operand() -> None:
    call = Call("a", "b", "c", beta=1.0)
    shapes = {"a": (3, 4), "b": (4, 5), "c": (3, 4)}
    with pytest.raises(UsageError, match="does not broadcast") as raised:
        request(call, lambda _call, name, _value: Operand(packed(shapes[name], NOWHERE)))
    shown = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert "<opaque float32 array, shape (3, 4), strides (16, 4)>" in shown


def test_arrays_of_the_host_stay_what_they_are() -> None:
    a = np.ones((4, 4), np.float32)
    assert type(spread(a, (2, 4, 4))) is np.ndarray
    assert type(gemmlab.gemm(a[np.newaxis], np.stack([a, a]))) is np.ndarray
