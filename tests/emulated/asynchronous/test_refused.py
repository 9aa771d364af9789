"""What the asynchronous machine does not emulate is refused by its name, before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab import TensorMap, launch
from gemmlab.core.errors import UsageError

IMAGES = TensorMap(np.zeros((4, 8, 8, 64), np.float32), (1, 1, 4, 32))
TENSORS = {
    "load": (
        (
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
            " [%1], [%0, {%1, %1, %1, %1}], [%1], {%2, %2};"
        ),
        "UTMALDG.4D.IM2COL",
    ),
    "store": (
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %1, %1, %1}], [%1];",
        "UTMASTG.4D.IM2COL",
    ),
    "prefetch": (
        "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%0, {%1, %1, %1, %1}], {%2, %2};",
        "UTMAPF.L2.4D.IM2COL",
    ),
}
PRODUCTS = {
    "sparse": (
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, %5, 0, 1, 1, 1, 0, 0;",
        "float", "f", "sparse multiplications are not emulated",
    ),
    "bits": (
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0, %1, %2, %3}, %4, %4, 1;",
        "int", "r", "the emulator does not know BGMMA",
    ),
}  # fmt: skip


def refused(source: str, args: list[Any], *words: str) -> None:
    with pytest.raises(UsageError) as error:
        launch(source, "refused", 1, 128, args, device="emulated:sm_90a")
    for each in words:
        assert each in str(error.value)


@pytest.mark.parametrize("way", TENSORS)
def test_im2col_is_refused(way: str) -> None:
    statement, opcode = TENSORS[way]
    source = f"""
    struct alignas(64) Map {{ char bytes[128]; }};
    extern "C" __global__ void refused(const __grid_constant__ Map map) {{
        asm volatile("{statement}" :: "l"(&map), "r"(0), "h"((short)0) : "memory");
    }}"""
    refused(source, [IMAGES], opcode, "im2col and gather modes are not emulated")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("what", PRODUCTS)
def test_sparse_and_single_bit_products_are_refused(what: str) -> None:
    statement, kind, letter, words = PRODUCTS[what]
    outputs = ", ".join(f'"+{letter}"(d[{place}])' for place in range(4))
    source = f"""
    extern "C" __global__ void refused({kind} *out) {{
        {kind} d[4] = {{}};
        asm volatile("wgmma.fence.sync.aligned; {statement} wgmma.commit_group.sync.aligned;"
                     " wgmma.wait_group.sync.aligned 0;" : {outputs} : "l"(0ull), "r"(0));
        out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
    }}"""
    refused(source, [np.zeros(128, np.float32 if kind == "float" else np.int32)], words)
