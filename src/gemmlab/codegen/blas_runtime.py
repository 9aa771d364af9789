"""Threads and workspaces of code that no Python looks after: the BLAS entries, in any program.

All state is one block of zeroed memory in the object itself; nothing has to be called first, and calls may come from
any thread of any language. Workspaces are mapped when they are first needed and kept. Threads are started by the first
product that is large enough for two:

    OWNER   0        no threads yet
           -pid      process pid is starting threads; whoever comes meanwhile works alone
            pid      the threads are pid's

A fork copies the block but not the threads; the child's own pid then differs from OWNER, and the child starts afresh. A
workspace that another thread held at the fork stays taken in the child.
"""

from __future__ import annotations

import mmap
import os
import signal
from dataclasses import dataclass

from gemmlab.codegen.function import Function
from gemmlab.codegen.module import Module
from gemmlab.codegen.pool import POOL_BYTES, WORD
from gemmlab.codegen.runtime import HUGE_PAGE, MOST_THREADS
from gemmlab.codegen.types import F32, I8, I32, I64, pointer
from gemmlab.codegen.values import Operand, Value

MEMORY = "gemmlab_blas"
SLOTS = 1024
"""Calls that can have a workspace at once."""
OWNER_AT = POOL_BYTES
ASKED_AT = OWNER_AT + WORD
"""Threads that were asked for, beside the caller: no more are tried for than this."""
THREADS_AT = ASKED_AT + WORD
HANDLER_AT = THREADS_AT + WORD
SLOTS_AT = HANDLER_AT + 5 * WORD
MEMORY_BYTES = SLOTS_AT + SLOTS * 2 * WORD
_ABSENT, _FREE, _TAKEN = 0, 1, 2
"""A slot is one of these, and an address."""

_SIGNALS_BYTES = 128
_CPU_WORDS = 128
"""A mask of CPUs for up to 8192 of them."""
BYTES = pointer(I8)


@dataclass(frozen=True, slots=True)
class NativeRuntime:
    """The runtime's emitted functions."""

    take: Function
    """`take()`: number of a workspace, -1 where there is none to be had."""
    helped: Function
    """`helped()`: how many threads may share a product, the caller among them."""

    @staticmethod
    def workspace(fn: Function, slot: Operand) -> Value:
        """The memory of a workspace that was taken."""
        return fn.cast(fn.load(_slot(fn, slot) + 1), F32)

    @staticmethod
    def release(fn: Function, slot: Operand) -> None:
        """Give a workspace back."""
        fn.atomic_store(_slot(fn, slot), _FREE)


def word(fn: Function, offset: int) -> Value:
    """A word of the block."""
    return fn.cast(memory(fn) + offset, I64)


def memory(fn: Function) -> Value:
    """The block, which begins with the pool."""
    return fn.symbol(f"@{MEMORY}", I8)


def _slot(fn: Function, index: Operand) -> Value:
    return fn.cast(memory(fn) + (fn.index(index) * (2 * WORD) + SLOTS_AT), I64)


def emit_runtime(module: Module, workspace_bytes: int, cpus_a_core: int) -> NativeRuntime:
    """Emit it, for a module that has a pool already; `gemmlab_blas_set_threads(int)` is exported.

    Threads there are: what was set, else GEMMLAB_NUM_THREADS, else CPUs that the process may use / `cpus_a_core`.
    """
    module.variable(MEMORY, f"internal global [{MEMORY_BYTES} x i8] zeroinitializer, align 64")
    pages = _emit_pages(module, workspace_bytes)
    with module.function("gemmlab_blas_set_threads", [("count", I32)], exported=True) as fn:
        fn.atomic_store(word(fn, THREADS_AT), fn.maximum(0, fn.minimum(fn.convert(fn.args[0], I64), MOST_THREADS)))
        fn.finish()
    return NativeRuntime(_emit_take(module, pages), _emit_helped(module, pages, _emit_threads(module, cpus_a_core)))


def _emit_pages(module: Module, nbytes: int) -> Function:
    """Emit `pages()`: address of zeroed memory on huge pages if there are any, 0 where the system refuses."""
    with module.function("pages", [], I64) as fn:
        signature = (BYTES, I64, I32, I32, I32, I64)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        access = mmap.PROT_READ | mmap.PROT_WRITE
        got = fn.call_external("mmap", BYTES, signature, 0, nbytes + HUGE_PAGE, access, flags, -1, 0)
        address = fn.address(got)
        with fn.when(address.equals(-1)):
            fn.ret(0)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            fn.call_external("madvise", I32, (BYTES, I64, I32), got, nbytes + HUGE_PAGE, mmap.MADV_HUGEPAGE)
        fn.finish((address + (HUGE_PAGE - 1)) & -HUGE_PAGE)
    return fn


def _emit_take(module: Module, pages: Function) -> Function:
    with module.function("take_slot", [], I64) as fn:
        with fn.range(SLOTS) as index:
            flag = _slot(fn, index)
            state = fn.atomic_load(flag)
            with fn.when(state.equals(_FREE)), fn.when(fn.compare_exchange(flag, _FREE, _TAKEN)):
                fn.ret(index)
            with fn.when(state.equals(_ABSENT)), fn.when(fn.compare_exchange(flag, _ABSENT, _TAKEN)):
                got = fn.call(pages)
                with fn.when(got.equals(0)):
                    fn.atomic_store(flag, _ABSENT)
                    fn.ret(-1)
                (flag + 1)[0] = got
                fn.ret(index)
        fn.finish(-1)
    return fn


def _emit_threads(module: Module, cpus_a_core: int) -> Function:
    """Emit `thread_count()`."""
    variable = module.variable("threads_variable", 'internal constant [20 x i8] c"GEMMLAB_NUM_THREADS\\00"')
    with module.function("thread_count", [], I64) as fn:
        count = fn.var(I64, fn.atomic_load(word(fn, THREADS_AT)))
        with fn.when(count < 1):
            text = fn.call_external("getenv", BYTES, (BYTES,), fn.symbol(variable, I8))
            with fn.when(fn.address(text).differs(0)):
                count.set(fn.call_external("strtol", I64, (BYTES, BYTES, I32), text, 0, 10))
            with fn.when(count < 1):
                count.set(_usable_cpus(fn) // cpus_a_core)
            count.set(fn.maximum(1, fn.minimum(count, MOST_THREADS)))
            fn.atomic_store(word(fn, THREADS_AT), count)
        fn.finish(count)
    return fn


def _usable_cpus(fn: Function) -> Value:
    online = fn.call_external("sysconf", I64, (I32,), os.sysconf_names["SC_NPROCESSORS_ONLN"])
    if not hasattr(os, "sched_getaffinity"):
        return online
    mask, found = fn.scratch(I64, _CPU_WORDS), fn.var(I64, 0)
    with fn.range(_CPU_WORDS) as index:
        mask[index] = 0
    fn.call_external("sched_getaffinity", I32, (I32, I64, pointer(I64)), 0, WORD * _CPU_WORDS, mask)
    fn.declare("llvm.ctpop.i64", "declare i64 @llvm.ctpop.i64(i64)")
    with fn.range(_CPU_WORDS) as index:
        found.set(found + fn.emit(I64, f"call i64 @llvm.ctpop.i64(i64 {mask[index].name})"))
    return fn.select(found < 1, online, found)


def _emit_helped(module: Module, pages: Function, thread_count: Function) -> Function:
    with module.function("blas_thread", [("workspace", BYTES)], BYTES) as main:
        # No call of the pool is number 0: a thread that is new looks at once whether there is something to do.
        main.call(module["gemmlab_worker"], memory(main), main.cast(main.args[0], F32), 0)
        main.finish(0)
    with module.function("helped", [], I64) as fn:
        wanted = fn.call(thread_count)
        with fn.when(wanted < 2):
            fn.ret(1)
        pid = fn.convert(fn.call_external("getpid", I32, ()), I64)
        owner, asked = fn.atomic_load(word(fn, OWNER_AT)), fn.atomic_load(word(fn, ASKED_AT))
        with fn.when(owner.equals(pid) & (asked >= wanted - 1)):
            fn.ret(wanted)
        with fn.when(owner.equals(0 - pid)):
            fn.ret(1)
        with fn.when(fn.compare_exchange(word(fn, OWNER_AT), owner, 0 - pid).equals(0)):
            fn.ret(1)
        first = fn.var(I64, fn.load(word(fn, ASKED_AT)))
        with fn.when(owner.differs(pid)):
            first.set(0)
            with fn.range(0, POOL_BYTES, WORD) as offset:
                fn.cast(memory(fn) + offset, I64)[0] = 0
            fn.call(module["gemmlab_pool_init"], memory(fn))
        _start(fn, main, pages, first.read(), wanted - 1)
        fn.atomic_store(word(fn, ASKED_AT), fn.maximum(first, wanted - 1))
        fn.atomic_store(word(fn, OWNER_AT), pid)
        fn.finish(wanted)
    return fn


def _start(fn: Function, main: Function, pages: Function, first: Value, last: Value) -> None:
    """Threads number `first` to `last`, as far as the system gives them. The program's signals are not for them."""
    every, before = fn.scratch(I8, _SIGNALS_BYTES), fn.scratch(I8, _SIGNALS_BYTES)
    with fn.range(0, _SIGNALS_BYTES, WORD) as offset:
        fn.cast(every + offset, I64)[0] = -1
    masks = (I32, BYTES, BYTES)
    fn.call_external("pthread_sigmask", I32, masks, signal.SIG_SETMASK, every, before)
    thread = fn.scratch(I64, 1)
    with fn.range(first, last):
        workspace = fn.call(pages)
        with fn.when(workspace.differs(0)):
            signature = (pointer(I64), BYTES, BYTES, BYTES)
            where = fn.cast(workspace, I8)
            failed = fn.call_external("pthread_create", I32, signature, thread, 0, fn.function_address(main), where)
            with fn.when(failed.equals(0)):
                fn.call_external("pthread_detach", I32, (I64,), thread[0])
    fn.call_external("pthread_sigmask", I32, masks, signal.SIG_SETMASK, before, 0)
