"""A hazard's message ends with its cure, and all verbs state the same one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.analysis.explanation import explain
from gemmlab.core.gpu import model
from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_cures import with_cures
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.racing_kernel import RACE

LOOP = "for (;;) {\n    s[x] = a[x];\n    __syncthreads();\n    sum += s[y];\n}\n"


def race(missing: str, line: int, other: int) -> Hazard:
    message = f"4-byte read of shared memory (LDS) and an access by thread (1, 0, 0) (STS) with no order: {missing}"
    return Hazard("race", "k", (0, 0, 0), (0, 0, 0), 0, "a.cu", line, other, message=message, space="shared")


def test_a_barrier_of_the_block_cures_races_within_a_warp_too() -> None:
    several, warp = race("__syncthreads() is missing", 4, 2), race("__syncwarp() is missing", 2, 4)
    first, second = with_cures([several, warp], read=lambda _file: LOOP)
    place = "__syncthreads() in the loop at lines 1-5, after line 4 and before line 2 is reached again"
    assert first.message.endswith(f"with no order; put {place}")
    assert second.message.endswith(f"with no order; {place} orders these accesses, too")
    (alone,) = with_cures([warp], read=lambda _file: LOOP)
    assert "; put __syncwarp() in the loop" in alone.message


def test_a_hazard_without_a_known_cure_stays_as_it_is() -> None:
    outside = Hazard("out of bounds", "k", (0, 0, 0), (0, 0, 0), 4, "a.cu", 2, message="4-byte read", space="global")
    assert with_cures([outside], read=lambda _file: LOOP) == (outside,)


def test_an_access_beyond_dynamic_shared_memory_names_the_statement_of_its_size() -> None:
    text = "__shared__ int fixed[4];\nextern __shared__ float s[];\nfixed[9] = 0; p = s; p[9] = 1;\n"
    access = Hazard("out of bounds", "k", (0, 0, 0), (0, 0, 0), 4, "a.cu", 3, space="shared", array="s",
                    message="4-byte write of shared memory at byte 36 of 0")  # fmt: skip
    for array in ("s", ""):
        (cured,) = with_cures([replace(access, array=array)], read=lambda _file: text)
        assert cured.message.endswith("; s[] is dynamic shared memory: state its bytes as smem_bytes")
    (cured,) = with_cures([replace(access, message=f"{access.message}16")], read=lambda _file: text)
    assert cured.message.endswith("smem_bytes is too small, or an index too large")
    fixed = replace(access, array="fixed")
    assert with_cures([fixed], read=lambda _file: text) == (fixed,)


@pytest.mark.in_turns(20)
@needs_compiler
def test_check_explain_and_counts_state_the_same_cure(tmp_path: Path) -> None:
    path = tmp_path / "race.cu"
    path.write_text(RACE.replace("__syncthreads();  // SECOND", ""), encoding="utf-8")
    kernel, op = user_kernel(path), GemmOp()
    checked = check_kernel(kernel, open_device("emulated"), op).details()
    explained = explain(kernel, "sm_90", model("H200"), {}, "64")
    counted = count_kernels(Count(op, open_device("emulated"), [kernel], op.parse_sizes("64"), verify=False))
    place = "put __syncthreads() in the loop at lines 12-19, after line 17 and before line 13 is reached again"
    assert place in checked
    for hazards in (explained.subject.hazards, counted.results[0].notes):
        told = [one.message if isinstance(one, Hazard) else one for one in hazards]
        assert any(place in one for one in told)
        assert not any("is missing" in one for one in told)
