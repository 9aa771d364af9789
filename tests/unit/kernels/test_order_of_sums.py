"""Kernels that state `in_order`: sums are one chain of multiply-adds in the order of k, rounded as naive rounds."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from support.cuda_source import needs_compiler

OP = GemmOp()


def alone(kernel: Kernel) -> dict[str, int]:
    """Return the default configuration, with k in a single part and nowhere shared by threads."""
    return kernel.configure(
        {name: 1 for name in ("SPLITS", "KGROUPS") if name in kernel.params and kernel.id != "stream_k"}
    )


IN_ORDER = [
    kernel
    for kernel in all_kernels()
    if kernel.op == "gemm" and kernel.id != "naive" and kernel.in_order(alone(kernel))
]
PROBLEM = GemmProblem(37, 70, 203, alpha=0.5, beta=-1.5)


def bits(kernel: Kernel, config: dict[str, int] | None = None) -> np.ndarray:
    contents = OP.fill(PROBLEM, np.random.default_rng(5))
    bound = bind(kernel, open_device("emulated:sm_90"), OP, PROBLEM, contents, config=config)
    bound.run()
    out = contents["c"].copy()
    bound.download("c", out)
    return out.view(np.uint32)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(4)
@pytest.mark.parametrize("kernel", IN_ORDER, ids=lambda kernel: kernel.id)
def test_kernels_in_order_have_naive_s_bits(kernel: Kernel) -> None:

    np.testing.assert_array_equal(bits(kernel, alone(kernel)), bits(find_kernel("naive")))


def test_there_are_such_kernels() -> None:
    assert {"naive_strided", "block_tile"} <= {kernel.id for kernel in IN_ORDER}
