"""A launch that reads unwritten memory: no hazard where that reaches no output, a hazard where it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.core.errors import TimeLimitError
from gemmlab.devices.emulated import EmulatedDevice
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
SOURCE = """
#include <cstdio>
__device__ int calls;
extern "C" __global__ void sums(const float* x, float* y, int n) {
    __shared__ float tile[32];
    for (int i = 0; i < n; ++i) tile[i] = x[i];
    volatile float* seen = tile;
    float sum = 0.0f;
    for (int i = 0; i < 32; ++i) { float one = seen[i]; USE }
    y[0] = sum + calls++;
}
"""
GUARDED = "if (i < n) sum += one;"


def launched(use: str = GUARDED, n: int = 20, **more: Any) -> gemmlab.Launched:
    x = np.arange(1, 33, dtype=np.float32)
    source = SOURCE.replace("USE", use)
    return gemmlab.launch(source, "sums", 1, 1, [x, x[:1] * 0, n], device="emulated:sm_80", **more)


@pytest.mark.in_turns(20)
def test_what_reaches_no_output_is_no_hazard(capsys: pytest.CaptureFixture[str]) -> None:
    done = launched(f'{GUARDED} if (i == 0) printf("once");')
    (read,) = done.stray
    assert "reads shared memory that nothing has written at sums.cu:9" in read
    assert read.endswith("which reaches no result")
    assert (done.hazards, done.outputs[1][0]) == ((), 210.0)
    # Neither is printed again, nor does a repeated run see what the one before left in a variable.
    assert capsys.readouterr().out == "once"
    explained = done.explain()
    assert (explained.subject.hazards, explained.subject.traits) == ((), [read])
    assert f"it {read}" in str(explained)
    assert "cannot be trusted" not in str(explained)
    assert f"it {read}" in done._repr_html_().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    "use",
    [
        "sum += one == 0.0f ? 0.0f : 1.0f;",
        "if (i < n) sum += one; else if (one != one) calls = 0;",
        'if (i < n) sum += one; else if (i == n) printf("%g", one);',
    ],
)
def test_what_is_used_is_a_hazard(use: str) -> None:
    done = launched(use)
    assert done.stray == ()
    assert [hazard.kind for hazard in done.hazards or ()] == ["unwritten"]
    assert "cannot be trusted" in str(done.explain())


@pytest.mark.in_turns(20)
def test_other_hazards_stay_beside_it() -> None:
    done = launched(f"{GUARDED} if (i == 31) sum += x[40] * 0.0f;")
    assert {hazard.kind for hazard in done.hazards or ()} == {"unwritten", "out of bounds"}
    assert done.stray == ()


@pytest.mark.in_turns(20)
def test_a_limit_that_ends_the_repeated_runs_leaves_the_hazard(monkeypatch: pytest.MonkeyPatch) -> None:
    first = EmulatedDevice.observe

    def observe(device: EmulatedDevice, *words: Any, **more: Any) -> Any:
        if more.get("filling") is not None:
            raise TimeLimitError("over")
        return first(device, *words, **more)

    monkeypatch.setattr(EmulatedDevice, "observe", observe)
    done = launched(timeout_s=60)
    assert [hazard.kind for hazard in done.hazards or ()] == ["unwritten"]


@pytest.mark.in_turns(20)
def test_explain_of_a_file_names_the_read(tmp_path: Path) -> None:
    path = tmp_path / "ahead.cu"
    path.write_text(
        '/* gemmlab\ngrid = "M, N"\nthreads = "1"\n*/\n'
        "__global__ void ahead(const float* A, const float* B, float* C, int M, int N, int K) {\n"
        "    __shared__ float tile[32]; volatile float* seen = tile; float sum = 0, next = seen[1];\n"
        "    for (int k = 0; k < K; ++k) sum += A[blockIdx.x * K + k] * B[k * N + blockIdx.y];\n"
        "    C[blockIdx.x * N + blockIdx.y] = K < 0 ? next : sum;\n}\n"
    )
    found = CliRunner().invoke(build_app(), ["explain", str(path), "--sizes", "8"])
    text = " ".join(found.stdout.split())
    assert found.exit_code == 0, found.output
    assert "Right at 8x8x8." in text
    assert "it reads shared memory that nothing has written at" in text
