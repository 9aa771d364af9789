"""Flushed memory keeps its contents and has to come from far away."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gemmlab.codegen.flush import LINE, emit_flush, flush
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target

ARM = Target(4, 32, "aarch64-unknown-linux-gnu", "generic", "", fused=True)
PLAIN_X86 = Target(4, 16, "x86_64-unknown-linux-gnu", "x86-64", "-clflushopt", fused=False)


@pytest.mark.parametrize("nbytes", [0, 1, LINE - 1, LINE, LINE + 1, 10_000])
def test_contents_stay(nbytes: int) -> None:
    values = np.random.default_rng(nbytes).integers(0, 256, nbytes + 2 * LINE, dtype=np.uint8)
    before = values.copy()
    flush(values.ctypes.data + 3, nbytes)
    assert np.array_equal(values, before)


def test_what_was_flushed_is_slower_to_read() -> None:
    values = np.ones(1 << 15, np.float64)
    # One element a line, in an order that no prefetcher guesses.
    order = np.random.default_rng(0).permutation(values.size // 8) * 8
    taken = np.empty(order.size, np.float64)

    def read_ns() -> int:
        start = time.perf_counter_ns()
        np.take(values, order, out=taken)
        return time.perf_counter_ns() - start

    warm, cold = [], []
    for _ in range(50):
        read_ns()
        warm.append(read_ns())
        flush(values.ctypes.data, values.nbytes)
        cold.append(read_ns())
    assert min(cold) > 1.5 * min(warm), (min(cold), min(warm))


def test_each_processor_gets_its_own_instruction() -> None:
    def text(target: Target) -> str:
        module = Module(target)
        emit_flush(module)
        return module.text()

    assert "dc civac" in text(ARM)
    assert "dsb ish" in text(ARM)
    assert "llvm.x86.sse2.clflush(" in text(PLAIN_X86)
