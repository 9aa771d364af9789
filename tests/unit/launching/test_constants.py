"""`__constant__` memory that a host sets, given by name to a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gemmlab
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
SOURCE = """
struct Step { int by; float scale; };
__constant__ float taps[3];
namespace mine { __constant__ Step step = {1, 2.0f}; }
static __constant__ int first = 5;
__device__ int counter;
__global__ void filter(const float* x, float* y, int n) {
    int i = threadIdx.x;
    if (i == 0) counter = n;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k < 3; ++k) sum += taps[k] * x[i + k * mine::step.by];
        y[i] = sum * mine::step.scale + first;
    }
}
"""
X = np.arange(24, dtype=np.float32)


def filtered(constants: dict[str, Any], source: str = SOURCE) -> np.ndarray[Any, Any]:
    args = {"x": X, "y": np.zeros(8, np.float32), "n": 8}
    done = gemmlab.launch(source, "filter", 1, 32, args, device="emulated:sm_80", constants=constants)
    assert not done.hazards
    outputs: dict[str, np.ndarray[Any, Any]] = done.outputs  # type: ignore[assignment]
    return outputs["y"]


@pytest.mark.in_turns(20)
def test_values_are_those_that_were_given() -> None:
    taps = np.array([0.5, 1.0, 0.25], np.float32)
    expected = sum(taps[k] * X[k : k + 8] for k in range(3)) * 2 + 5
    assert filtered({"taps": taps}).tolist() == expected.tolist()
    assert filtered({"taps": taps * 0}).tolist() == [5.0] * 8


@pytest.mark.in_turns(20)
def test_names_in_namespaces_structures_and_scalars() -> None:
    step = np.array([(2, 10.0)], [("by", np.int32), ("scale", np.float32)])
    taps = np.array([1, 0, 1], np.float32)
    found = filtered({"taps": taps, "step": step, "first": np.int32(-3)})
    assert found.tolist() == ((X[:8] + X[4:12]) * 10 - 3).tolist()


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"taps": np.zeros(3)}, "constant taps has 12 bytes; it was given float64 of shape .3,., 24 bytes"),
        ({"tap": np.zeros(3, np.float32)}, r"no __constant__ variable 'tap'; did you mean taps\?"),
        ({"counter": np.int32(1)}, "counter is a __device__ variable"),
    ],
)
def test_what_does_not_fit_is_refused(constants: dict[str, Any], said: str) -> None:
    with pytest.raises(gemmlab.UsageError, match=said):
        filtered(constants)


def test_code_without_constants_says_so() -> None:
    source = "__global__ void filter(float* x, float* y, int n) { y[threadIdx.x % 8] = n; }"
    with pytest.raises(gemmlab.UsageError, match="the code has none that it uses"):
        filtered({"taps": np.zeros(3, np.float32)}, source)


def test_other_values_are_other_code() -> None:
    args = [X, np.zeros(8, np.float32), 8]
    digests = {
        gemmlab.launch(SOURCE, "filter", 1, 32, args, device="emulated:sm_80", constants=given).artifact.digest
        for given in (None, {"first": np.int32(5)}, {"first": np.int32(6)})
    }
    assert len(digests) == 2
