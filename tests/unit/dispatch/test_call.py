"""The value of one call: it has every argument of `gemm`, by the same names and with the same defaults."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import pytest

import gemmlab
from gemmlab.dispatch.call import Call

IN_PIECES = {"device", "memory_bytes", "checkpoint", "progress"}
"""Arguments of a product in pieces; each piece is a call without them."""


def test_a_call_has_the_arguments_of_gemm() -> None:
    gemm = signature(gemmlab.gemm).parameters
    assert gemm.keys() >= IN_PIECES
    expected = {name: p.default for name, p in gemm.items() if name not in IN_PIECES}
    found = {name: p.default for name, p in signature(Call).parameters.items()}
    assert found == expected
    assert [name for name, default in found.items() if default is Parameter.empty] == ["a", "b"]


def test_nothing_of_a_call_changes() -> None:
    call = Call("x", "y")
    with pytest.raises(AttributeError):
        call.alpha = 2.0  # type: ignore[misc]
    assert call.arrays == {"a": "x", "b": "y", "c": None, "out": None}


@pytest.mark.parametrize(("named", "forced"), [({}, False), ({"kernel": "naive"}, True), ({"config": {}}, True)])
def test_a_call_that_names_a_kernel_or_parameters_is_forced(named: dict[str, Any], forced: bool) -> None:
    assert Call("x", "y", **named).forced is forced
