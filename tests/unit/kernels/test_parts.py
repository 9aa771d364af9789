"""Parts of the same sums, added by the blocks that computed them (`cuda_common/parts.cuh`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab import launch
from gemmlab.kernels.cuda_file.instance import COMMON
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
THREADS, COUNT = 64, 8
Floats = npt.NDArray[np.float32]
SOURCE = """
#include "parts.cuh"
template <int FAN>
__global__ void probe(const float* x, const int* order, unsigned parts, unsigned* tickets, float* workspace, float* out)
{
    const unsigned part = order[blockIdx.x];
    float sums[8];
    for (int i = 0; i < 8; ++i) sums[i] = x[(part * 8 + i) * 64 + threadIdx.x];
    if (join_parts<FAN, 64>(sums, part, parts, tickets, workspace))
        for (int i = 0; i < 8; ++i) out[i * 64 + threadIdx.x] += sums[i];
}
"""


def tree(parts: Floats, fan: int) -> Floats:
    """Add the leading axis by nodes of `fan`, in pairs within a node; what is missing is zeros."""
    while len(parts) > 1:
        nodes = []
        for first in range(0, len(parts), fan):
            node = np.zeros((fan, *parts.shape[1:]), np.float32)
            children = parts[first : first + fan]
            node[: len(children)] = children
            while len(node) > 1:
                node = node[::2] + node[1::2]
            nodes.append(node[0])
        parts = np.array(nodes)
    whole: Floats = parts[0]
    return whole


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fan", [8, 4, 16])
@pytest.mark.parametrize("parts", [70, 1, 2, 8, 9, 17, 64, 65])
def test_the_sum_is_that_of_the_tree_whoever_comes_last(parts: int, fan: int) -> None:
    x = np.random.default_rng(parts).standard_normal((parts, COUNT, THREADS)).astype(np.float32)
    tickets = np.zeros(-(-parts // (fan // 2)), np.uint32)
    shuffled = np.random.default_rng(1).permutation(parts).astype(np.int32)
    ascending = np.arange(parts, dtype=np.int32)
    for order in (ascending, ascending[::-1].copy(), shuffled):
        args = {
            "x": x, "order": order, "parts": np.uint32(parts), "tickets": tickets,
            "workspace": np.full_like(x, np.nan), "out": np.zeros((COUNT, THREADS), np.float32),
        }  # fmt: skip
        done = launch(
            SOURCE, f"probe<{fan}>", parts, THREADS, args, device="emulated:sm_90", races=True,
            options=(f"-I{COMMON}",),
        )  # fmt: skip
        assert isinstance(done.outputs, dict)
        assert done.hazards == ()
        assert np.asarray(done.outputs["out"]).tobytes() == tree(x, fan).tobytes()
        assert not np.asarray(done.outputs["tickets"]).any()


@pytest.mark.parametrize("fan", [4, 8, 16, 32])
def test_there_are_tickets_for_every_node(fan: int) -> None:
    """The nodes of the tree are at most `ceil_div(parts, FAN // 2)`, as `tickets_for` in parts.cuh has it."""
    for parts in range(2, 3000):
        left, nodes = parts, 0
        while left > 1:
            left = -(-left // fan)
            nodes += left
        assert nodes <= -(-parts // (fan // 2))
