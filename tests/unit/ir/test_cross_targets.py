"""Code for processors and systems that are not here: LLVM takes it, and it asks for nothing that they lack."""

from __future__ import annotations

import pytest

from gemmlab.codegen.runtime import SYMBOL
from gemmlab.emulator.services import emit_services
from gemmlab.ir.target import _triple
from gemmlab.toolchain.elf import RELA, read_elf
from support.foreign_code import TARGETS, compile_foreign, product, wanted

POSIX = {
    *(f"pthread_mutex_{word}" for word in ("init", "lock", "unlock")),
    *(f"pthread_cond_{word}" for word in ("init", "wait", "broadcast")),
    "sched_yield", "clock_gettime", "PyLong_AsLong",
}  # fmt: skip
WINDOWS = {
    "InitializeSRWLock", "AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "SwitchToThread",
    "InitializeConditionVariable", "SleepConditionVariableSRW", "WakeAllConditionVariable",
    "QueryPerformanceCounter", "QueryPerformanceFrequency", "PyLong_AsLongLong",
}  # fmt: skip
PYTHON = {"Py_IncRef", "PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread"}
C = {"memset", "memcpy", "bzero", "__bzero", "trunc", "__chkstk"}
"""What LLVM makes of loops and rounding; the last asks Windows for the pages of a large stack frame."""


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
def test_the_product_asks_for_what_the_system_has(name: str) -> None:
    target = TARGETS[name]
    found = wanted(compile_foreign(product(target), target))
    system = WINDOWS if target.windows else POSIX
    assert found & (POSIX | WINDOWS) == system
    assert found - system <= PYTHON | C | {SYMBOL}
    assert {SYMBOL, *PYTHON} <= found


@pytest.mark.in_turns(20)
def test_the_emulator_asks_for_no_more_than_memory() -> None:
    target = TARGETS["Windows, AVX-512"]
    assert wanted(compile_foreign(emit_services(target), target, level=1)) <= C


@pytest.mark.in_turns(20)
def test_windows_code_reaches_any_address() -> None:
    target = TARGETS["Windows, AVX-512"]
    elf = read_elf(compile_foreign(product(target), target), "object")
    tables = [section for section in elf.sections if section.kind == RELA]
    outside = [r for table in tables for r in elf.relocations(table) if not elf.symbols[r.symbol].section]
    assert len(outside) > 20
    absolute = 1  # R_X86_64_64
    assert {relocation.kind for relocation in outside} == {absolute}


@pytest.mark.parametrize(
    ("process", "triple"),
    [
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc-elf"),
        ("x86_64-pc-windows-msvc-elf", "x86_64-pc-windows-msvc-elf"),
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("arm64-apple-darwin23.0.0", "arm64-apple-darwin23.0.0"),
    ],
)
def test_windows_alone_gets_objects_of_another_kind(process: str, triple: str) -> None:
    assert _triple(process) == triple
