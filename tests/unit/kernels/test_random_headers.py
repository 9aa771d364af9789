"""cuRAND's headers: taken as they are, from a folder of the options or from the package that has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gemmlab
from gemmlab.kernels.cuda_file.device_code import device_code
from gemmlab.toolchain import cuda_headers
from support.cuda_source import needs_compiler

SOURCE = """
#include <curand_kernel.h>
__device__ float draw(curandState* state) { return curand_uniform(state); }
__global__ void draws(float* x) {
    curandState state;
    curand_init(7, threadIdx.x, 0, &state);
    x[threadIdx.x] = draw(&state);
}
"""
KERNEL = """#include "curand_uniform.h"
"""
UNIFORM = """#define QUALIFIERS static __forceinline__ __device__
struct curandState { unsigned number; };
QUALIFIERS void curand_init(int seed, int sequence, int offset, curandState* state) {
    state->number = seed + sequence;
}
QUALIFIERS unsigned curand(curandState* state) { return state->number++; }
QUALIFIERS float curand_uniform(curandState* state) { return 0.5f * curand(state); }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with headers that have cuRAND's names and form."""
    (tmp_path / "curand_kernel.h").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "curand_uniform.h").write_text(UNIFORM, encoding="utf-8")
    return tmp_path


def test_headers_come_from_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_headers, "random_folder", lambda: folder)
    found = device_code(SOURCE, "", ())
    assert found.headers == {"curand_kernel.h": KERNEL, "curand_uniform.h": UNIFORM}
    assert "curand_uniform(state)" in found.text


def test_a_folder_of_the_options_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_headers, "random_folder", lambda: folder)
    assert not device_code(SOURCE, "", (f"-I{folder}",)).headers


def test_without_them_the_compiler_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_headers, "random_folder", lambda: None)
    assert not device_code(SOURCE, "", ()).headers


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_draws_numbers(folder: Path) -> None:
    done = gemmlab.launch(
        SOURCE, "draws", 1, 32, [np.zeros(32, np.float32)], device="emulated:sm_80", options=[f"-I{folder}"]
    )  # fmt: skip
    outputs: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = done.outputs  # type: ignore[assignment]
    assert outputs[0].tolist() == [0.5 * (7 + lane) for lane in range(32)]
