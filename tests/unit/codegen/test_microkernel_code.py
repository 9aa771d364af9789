"""The register tile's machine code: nothing but multiply-adds, their operands and prefetches while k runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from gemmlab.codegen.microkernel import best_tile
from gemmlab.core.errors import DeviceError
from gemmlab.devices.cpu import CpuDevice
from gemmlab.ir import compile as compiler
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.kernels.catalog import find_kernel

_NAME = re.compile(r"^(micro_(\d+)x(\d+)_\w+):")
_LABEL = re.compile(r"^\.?\w+:")
_FUSED = re.compile(r"^\s+(vfn?madd\w*ps|fmla)\s")
_SPILLED = re.compile(r"^\s+v?mov[au]p[sd]\s+%[xyz]mm\d+, -?\d*\(%rsp|^\s+st[rp]\s+q\d+.*\[sp")
_RELOADED = re.compile(r"^\s+v\w+\s+-?\d*\(%rsp.*%[xyz]mm|^\s+ld[rp]\s+q\d+.*\[sp")


@cache
def tiles(lanes: int) -> dict[tuple[str, int, int], list[str]]:
    """Assembly lines of every register tile of the `microkernel` kernel, by name, rows and vectors."""
    kernel, device = find_kernel("microkernel"), CpuDevice()
    config = kernel.configure({"LANES": lanes})
    program = kernel.program(config, device.target(config))
    machine, module = compiler._optimised(program.emit(), host_target(lanes), vectorize=program.vectorize, level=2)
    text = str(machine.emit_assembly(module))
    found: dict[tuple[str, int, int], list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        start = _NAME.match(line)
        if start:
            current = found.setdefault((start[1], int(start[2]), int(start[3])), [])
        elif re.match(r"^[a-z]\w*:", line):
            current = []
        current.append(line)
    return found


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """Basic blocks: from one label or branch to the next."""
    block: list[str] = []
    for line in lines:
        if _LABEL.match(line):
            yield block
            block = []
        block.append(line)
        if re.match(r"^\s+(j\w+|b|b\.\w+|cbn?z|tbn?z)\s", line):
            yield block
            block = []
    yield block


def multiply_adds(block: list[str]) -> int:
    return sum(bool(_FUSED.match(line)) for line in block)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_loop_over_k_spills_nothing_and_wastes_no_multiply_add(lanes: int) -> None:
    try:
        target = host_target(lanes)
    except DeviceError as error:
        pytest.skip(str(error))
    if not target.fused:
        pytest.skip("this processor has no fused multiply-add")
    tile = best_tile(target)
    every = tiles(lanes)
    assert {(rows, vectors) for _, rows, vectors in every} >= {(tile.rows, tile.vectors), (1, 1)}
    for (name, rows, vectors), lines in every.items():
        step = rows * vectors
        rounds = [block for block in blocks(lines) if multiply_adds(block) >= 2 * step]
        assert rounds, f"{name}: no unrolled loop"
        for block in rounds:
            assert multiply_adds(block) % step == 0, f"{name}: {multiply_adds(block)} multiply-adds, not whole steps"
            stack = [line for line in block if _SPILLED.match(line) or _RELOADED.match(line)]
            assert not stack, f"{name} keeps a vector on the stack: {stack[0].strip()}"


def test_the_full_tile_fills_the_registers() -> None:
    target = host_target()
    tile = best_tile(target)
    # Accumulators, a row of B and one broadcast element.
    used = tile.rows * tile.vectors + tile.vectors + 1
    assert used <= target.registers
    assert used >= target.registers * 3 // 4


@pytest.mark.parametrize("line", ["\tvmovups\t%zmm3, -64(%rsp)", "\tvmovaps\t%ymm11, 32(%rsp)        # 32-byte Spill"])
def test_a_spill_would_be_seen(line: str) -> None:
    assert _SPILLED.match(line)
