"""The memory of the BLAS entries, which run in any program, without Python.

All state is one block of zeroed memory in the object itself; nothing has to be called first, and calls may come from
any thread of any language. Workspaces are mapped when they are first needed and never unmapped. A workspace that
another thread uses at a fork stays unavailable in the child.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

from gemmlab.codegen.pool import POOL_BYTES, WORD
from gemmlab.codegen.runtime import HUGE_PAGE
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, pointer
from gemmlab.ir.values import Operand, Value

MEMORY = "gemmlab_blas"
SLOTS = 1024
"""The most calls that can have a workspace at once."""
OWNER_AT = POOL_BYTES
REQUESTED_AT = OWNER_AT + WORD
"""Byte offset of the number of worker threads that were requested so far; later products start only those beyond it."""
THREADS_AT = REQUESTED_AT + WORD
HANDLER_AT = THREADS_AT + WORD
SLOTS_AT = HANDLER_AT + WORD
MEMORY_BYTES = SLOTS_AT + SLOTS * 2 * WORD
_ABSENT, _FREE, _BUSY = 0, 1, 2
"""States of a slot, the first of its two words; the second is the address of its workspace."""

BYTES = pointer(I8)


@dataclass(frozen=True, slots=True)
class Workspaces:
    """The emitted functions that map, take and release workspaces."""

    pages: Function
    """`pages()`: map zeroed memory for one workspace and return its address, or 0 if the system refuses."""
    take: Function
    """`take()`: take a free workspace, which may be mapped for it, and return its number.

    It returns -1 if there is none, or if the system refuses the memory.
    """

    @staticmethod
    def at(fn: Function, slot: Operand) -> Value:
        """Return the address of workspace number `slot`, which must have been taken."""
        return fn.cast(fn.load(_slot(fn, slot) + 1), F32)

    @staticmethod
    def release(fn: Function, slot: Operand) -> None:
        """Emit the release of workspace number `slot`."""
        fn.atomic_store(_slot(fn, slot), _FREE)


def word(fn: Function, offset: int) -> Value:
    """Return the address of the 64-bit word at a byte offset in the object's block of memory."""
    return fn.cast(memory(fn) + offset, I64)


def memory(fn: Function) -> Value:
    """Return the address of the object's block of memory, which begins with the pool."""
    return fn.symbol(f"@{MEMORY}", I8)


def _slot(fn: Function, index: Operand) -> Value:
    return fn.cast(memory(fn) + (fn.index(index) * (2 * WORD) + SLOTS_AT), I64)


def emit_workspaces(module: Module, nbytes: int) -> Workspaces:
    """Emit the object's block of memory, and the functions that map and take workspaces of `nbytes` bytes."""
    module.variable(MEMORY, f"internal global [{MEMORY_BYTES} x i8] zeroinitializer, align 64")
    pages = _emit_pages(module, nbytes)
    return Workspaces(pages, _emit_take(module, pages))


def _emit_pages(module: Module, nbytes: int) -> Function:
    with module.function("pages", [], I64) as fn:
        signature = (BYTES, I64, I32, I32, I32, I64)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        access = mmap.PROT_READ | mmap.PROT_WRITE
        mapping = fn.call_external("mmap", BYTES, signature, 0, nbytes + HUGE_PAGE, access, flags, -1, 0)
        address = fn.address(mapping)
        with fn.when(address.equals(-1)):
            fn.ret(0)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            fn.call_external("madvise", I32, (BYTES, I64, I32), mapping, nbytes + HUGE_PAGE, mmap.MADV_HUGEPAGE)
        fn.finish((address + (HUGE_PAGE - 1)) & -HUGE_PAGE)
    return fn


def _emit_take(module: Module, pages: Function) -> Function:
    with module.function("take_slot", [], I64) as fn:
        with fn.range(SLOTS) as index:
            flag = _slot(fn, index)
            state = fn.atomic_load(flag)
            with fn.when(state.equals(_FREE)), fn.when(fn.compare_exchange(flag, _FREE, _BUSY)):
                fn.ret(index)
            with fn.when(state.equals(_ABSENT)), fn.when(fn.compare_exchange(flag, _ABSENT, _BUSY)):
                mapping = fn.call(pages)
                with fn.when(mapping.equals(0)):
                    fn.atomic_store(flag, _ABSENT)
                    fn.ret(-1)
                (flag + 1)[0] = mapping
                fn.ret(index)
        fn.finish(-1)
    return fn
