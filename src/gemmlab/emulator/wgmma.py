"""Services for warpgroup multiplications: functions that compiled handlers call."""

from __future__ import annotations

from gemmlab.emulator.cluster_operands import emit_operand_far
from gemmlab.emulator.wgmma_arithmetic import SUM, emit_sum_floats, emit_sum_integers
from gemmlab.emulator.wgmma_flight import (
    ISSUE,
    LEARN,
    WAIT,
    emit_issue,
    emit_land_oldest,
    emit_learn,
    emit_wait,
)
from gemmlab.emulator.wgmma_multiply import MULTIPLY, emit_compare_proxies, emit_multiply
from gemmlab.emulator.wgmma_operands import DECODE, FETCH, emit_decode, emit_fetch
from gemmlab.emulator.wgmma_races import KNOW, OPERAND_RACE, emit_know, emit_operand_proxy, emit_operand_race
from gemmlab.emulator.wgmma_swizzle import OPERAND_BASE, emit_operand_base
from gemmlab.ir.module import Module
from gemmlab.ir.types import I32, VOID


def emit_wgmma(module: Module) -> None:
    """Emit all functions for warpgroup multiplications.

    Handlers of warpgroup instructions call two of them, the issue and the wait.
    """
    with module.function("know", KNOW, VOID) as fn:
        emit_know(fn)
    with module.function("operand_race", OPERAND_RACE, VOID) as fn:
        emit_operand_race(fn, module)
    with module.function("operand_proxy", OPERAND_RACE, VOID) as fn:
        emit_operand_proxy(fn, module)
    with module.function("operand_far", OPERAND_RACE, VOID) as fn:
        emit_operand_far(fn, module)
    with module.function("operand_base", OPERAND_BASE, VOID) as fn:
        emit_operand_base(fn, module)
    with module.function("fetch", FETCH, VOID) as fn:
        emit_fetch(fn, module)
    with module.function("decode", DECODE, VOID, exported=True) as fn:
        emit_decode(fn)
    with module.function("sum_floats", SUM, VOID, exported=True) as fn:
        emit_sum_floats(fn)
    with module.function("sum_integers", SUM, VOID, exported=True) as fn:
        emit_sum_integers(fn)
    with module.function("multiply", MULTIPLY, VOID) as fn:
        emit_multiply(fn, module)
    with module.function("land_oldest", MULTIPLY[:1], VOID) as fn:
        emit_land_oldest(fn, module)
    with module.function("compare_proxies", MULTIPLY, VOID) as fn:
        emit_compare_proxies(fn, module)
    with module.function("issue_wgmma", ISSUE, VOID, exported=True) as fn:
        emit_issue(fn, module)
    with module.function("learn", LEARN, VOID) as fn:
        emit_learn(fn)
    with module.function("wait_wgmma", WAIT, I32, exported=True) as fn:
        emit_wait(fn, module)
