"""Threads of compiled code without Python. They are started by the first product that is large enough for two threads:

    OWNER   0        no threads yet
           -pid      process pid is starting threads; other calls meanwhile work alone
            pid      the threads are pid's

A fork copies the block of memory but not the threads. The child's own pid then differs from OWNER, so the child starts
threads of its own.
"""

from __future__ import annotations

import os
import signal

from gemmlab.codegen.blas.standalone_runtime import BYTES, OWNER_AT, REQUESTED_AT, THREADS_AT, memory, word
from gemmlab.codegen.pool import POOL_BYTES, WORD
from gemmlab.codegen.runtime import MOST_THREADS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, pointer
from gemmlab.ir.values import Value

_SIGNALS_BYTES = 128
_CPU_WORDS = 128
"""Words of a mask for up to 8192 CPUs."""


def emit_threads(module: Module, pages: Function, cpus_a_core: int) -> Function:
    """Emit `helped()`, which starts threads if need be and returns how many may share a product, the caller included.

    The number is the argument of the exported `gemmlab_blas_set_threads(int)` if it is positive, else
    GEMMLAB_NUM_THREADS, else the number of CPUs that the process may use, divided by `cpus_a_core`; it is at most
    `MOST_THREADS`, and 1 while another call starts threads. The module must have a pool.
    """
    with module.function("gemmlab_blas_set_threads", [("count", I32)], exported=True) as fn:
        fn.atomic_store(word(fn, THREADS_AT), fn.maximum(0, fn.minimum(fn.convert(fn.args[0], I64), MOST_THREADS)))
        fn.finish()
    return _emit_helped(module, pages, _emit_count(module, cpus_a_core))


def _emit_count(module: Module, cpus_a_core: int) -> Function:
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
        # Calls of the pool are numbered from 1, so a new thread looks for work at once.
        main.call(module["gemmlab_worker"], memory(main), main.cast(main.args[0], F32), 0)
        main.finish(0)
    with module.function("helped", [], I64) as fn:
        wanted = fn.call(thread_count)
        with fn.when(wanted < 2):
            fn.ret(1)
        pid = fn.convert(fn.call_external("getpid", I32, ()), I64)
        owner, requested = fn.atomic_load(word(fn, OWNER_AT)), fn.atomic_load(word(fn, REQUESTED_AT))
        with fn.when(owner.equals(pid) & (requested >= wanted - 1)):
            fn.ret(wanted)
        with fn.when(owner.equals(0 - pid)):
            fn.ret(1)
        with fn.when(fn.compare_exchange(word(fn, OWNER_AT), owner, 0 - pid).equals(0)):
            fn.ret(1)
        first = fn.var(I64, fn.load(word(fn, REQUESTED_AT)))
        with fn.when(owner.differs(pid)):
            first.set(0)
            with fn.range(0, POOL_BYTES, WORD) as offset:
                fn.cast(memory(fn) + offset, I64)[0] = 0
            fn.call(module["gemmlab_pool_init"], memory(fn))
        _start(fn, main, pages, first.read(), wanted - 1)
        fn.atomic_store(word(fn, REQUESTED_AT), fn.maximum(first, wanted - 1))
        fn.atomic_store(word(fn, OWNER_AT), pid)
        fn.finish(wanted)
    return fn


def _start(fn: Function, main: Function, pages: Function, first: Value, last: Value) -> None:
    """Emit the start of threads number `first` to `last` - 1, or of as many as the system allows; they block all
    signals.
    """
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
