"""Threads that share the jobs of one call, inside compiled code.

Workers are started once, as Python threads (`codegen/runtime.py`) or, without Python, as threads of the system
(`codegen/blas/threads.py`), and stay in `gemmlab_worker`: they spin for a bounded time on a sequence number, then sleep
on a condition variable, where they cost nothing. A call publishes a function and a number of jobs, and takes part
itself; each free thread takes the next job number. A worker that spins starts on a call in well under a microsecond;
work handed to Python threads would start after 60 us.

The gate is one atomic word: the upper half is the number of workers that may still join a call, the lower half the
number that work on it. A worker joins only by decrementing the upper half, so one that wakes late finds 0 and cannot
read the arguments of a finished call. A caller that finds the pool busy does all its jobs alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.clock import emit_clock
from gemmlab.codegen.sleep import Sleeping
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I64, VOID, pointer
from gemmlab.ir.values import Operand, Value

WORD = 8
_LINE = 64
_PLACE = 1 << 32

# Byte offsets in the pool's memory; words that different threads write are on different cache lines.
SEQUENCE = 0
GATE = _LINE
NEXT_JOB = 2 * _LINE
TASK = 3 * _LINE
CONTEXT = TASK + WORD
JOBS = TASK + 2 * WORD
SLEEPERS = 4 * _LINE
BUSY = 5 * _LINE
MUTEX = 6 * _LINE
CONDITION = 8 * _LINE
AREA = 10 * _LINE
"""Offset of the address of the memory that the threads of one call share; the address is 0 if there is none."""
POOL_BYTES = 11 * _LINE
AREA_BYTES = 32 << 20
"""Size of the shared memory: two blocks of B of some 700 x 5000."""

_SPIN_NS = 1_000_000
"""Nanoseconds that a worker spins before it sleeps. Waking it takes 50 us, and the scheduler may run it on its caller's
core, after the caller, for milliseconds. (OpenMP runtimes spin for 1 to 200 ms.)
"""
_SPINS_A_LOOK = 64
_SPINS_BEFORE_YIELD = 20000

TASK_SIGNATURE = (pointer(I64), I64, pointer(F32))
"""Arguments of a task: the address of its context, which all jobs of a call share, the number of the job, and the
workspace of the thread that does the job.
"""


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool's emitted functions."""

    run: Function
    """`run(pool, task, context, jobs, threads, workspace)`: do jobs 0 to `jobs` - 1 of `task` on up to `threads`
    threads, or on the caller's alone if another caller holds the pool.
    """
    take: Function
    """`take(pool)`: return 1 if the caller now holds the pool and the shared memory, 0 if another caller does."""
    share: Function
    """`share`, with the arguments of `run`: do jobs as `run` does, for a caller that holds the pool already. It may be
    called many times until `leave`.
    """
    leave: Function
    """`leave(pool)`: give up the pool."""


def _word(fn: Function, pool: Value, offset: int) -> Value:
    return fn.cast(pool + offset, I64)


def emit_pool(module: Module) -> Pool:
    """Emit the functions of a pool, and two exported ones: `gemmlab_pool_init(pool)`, and
    `gemmlab_worker(pool, workspace, sequence)`, which a worker thread never leaves.
    """
    memory, sleeping = pointer(I8), Sleeping.on(module.target, MUTEX, CONDITION)
    with module.function("gemmlab_pool_init", [("pool", memory)], exported=True) as fn:
        (pool,) = fn.args
        sleeping.init(fn, pool)
        fn.finish()

    with module.function("draw_jobs", [("pool", memory), ("workspace", pointer(F32))]) as draw:
        pool, workspace = draw.args
        task = draw.cast(_word(draw, pool, TASK)[0], I8)
        context = draw.cast(_word(draw, pool, CONTEXT)[0], I64)
        jobs = _word(draw, pool, JOBS)[0]
        with draw.loop() as done:
            job = draw.atomic_add(_word(draw, pool, NEXT_JOB), 1)
            draw.leave_if(done, job >= jobs)
            draw.call_pointer(task, VOID, TASK_SIGNATURE, context, job, workspace)
        draw.finish()

    with module.function("pool_take", [("pool", memory)], I64) as take:
        take.finish(take.zero_extend(take.compare_exchange(_word(take, take.args[0], BUSY), 0, 1)))
    with module.function("pool_leave", [("pool", memory)]) as leave:
        leave.atomic_store(_word(leave, leave.args[0], BUSY), 0)
        leave.finish()
    _emit_worker(module, draw, sleeping)
    share = _emit_share(module, draw, sleeping)
    return Pool(_emit_run(module, take, share, leave), take, share, leave)


def _emit_worker(module: Module, draw: Function, sleeping: Sleeping) -> None:
    memory, clock = pointer(I8), emit_clock(module)
    params = [("pool", memory), ("workspace", pointer(F32)), ("seen", I64)]
    with module.function("gemmlab_worker", params, exported=True) as fn:
        pool, workspace, first_sequence = fn.args
        sequence, gate = _word(fn, pool, SEQUENCE), _word(fn, pool, GATE)
        served = fn.var(I64, first_sequence)
        with fn.loop():
            deadline = fn.call(clock) + _SPIN_NS
            with fn.loop() as news:
                with fn.range(_SPINS_A_LOOK):
                    fn.leave_if(news, fn.atomic_load(sequence).differs(served))
                    fn.pause()
                fn.leave_if(news, fn.call(clock) > deadline)
            with fn.when(fn.atomic_load(sequence).equals(served)):
                sleeping.lock(fn, pool)
                fn.atomic_add(_word(fn, pool, SLEEPERS), 1)
                with fn.loop() as woken:
                    fn.leave_if(woken, fn.atomic_load(sequence).differs(served))
                    sleeping.wait(fn, pool)
                fn.atomic_add(_word(fn, pool, SLEEPERS), -1)
                sleeping.unlock(fn, pool)
            served.set(fn.atomic_load(sequence))
            inside = fn.var(I64, 0)
            with fn.loop() as decided:
                state = fn.atomic_load(gate)
                fn.leave_if(decided, state < _PLACE)
                inside.set(fn.zero_extend(fn.compare_exchange(gate, state, state - _PLACE + 1)))
                fn.leave_if(decided, inside.differs(0))
            with fn.when(inside.differs(0)):
                fn.call(draw, pool, workspace)
                fn.atomic_add(gate, -1)
        fn.finish()


_RUN = (
    ("pool", pointer(I8)), ("task", pointer(I8)), ("context", pointer(I64)), ("jobs", I64), ("threads", I64),
    ("workspace", pointer(F32)),
)  # fmt: skip


def _alone(fn: Function, task: Value, context: Value, jobs: Value, workspace: Value) -> None:
    with fn.range(jobs) as job:
        fn.call_pointer(task, VOID, TASK_SIGNATURE, context, job, workspace)


def _emit_run(module: Module, take: Function, share: Function, leave: Function) -> Function:
    with module.function("pool_run", _RUN) as fn:
        pool, task, context, jobs, threads, workspace = fn.args
        taken = fn.var(I64, 0)
        with fn.when(fn.minimum(threads, jobs) > 1):
            taken.set(fn.call(take, pool))
        with fn.choose(taken.differs(0)) as how:
            with how.yes():
                fn.call(share, *fn.args)
                fn.call(leave, pool)
            with how.no():
                _alone(fn, task, context, jobs, workspace)
        fn.finish()
    return fn


def _emit_share(module: Module, draw: Function, sleeping: Sleeping) -> Function:
    with module.function("pool_share", _RUN) as fn:
        pool, task, context, jobs, threads, workspace = fn.args
        wanted = fn.minimum(threads, jobs) - 1
        with fn.choose(wanted < 1) as how:
            with how.yes():
                _alone(fn, task, context, jobs, workspace)
            with how.no():
                _word(fn, pool, TASK)[0] = fn.address(task)
                _word(fn, pool, CONTEXT)[0] = fn.address(context)
                _word(fn, pool, JOBS)[0] = jobs
                fn.atomic_store(_word(fn, pool, NEXT_JOB), 0)
                fn.atomic_store(_word(fn, pool, GATE), wanted * _PLACE)
                fn.atomic_add(_word(fn, pool, SEQUENCE), 1)
                with fn.when(fn.atomic_load(_word(fn, pool, SLEEPERS)) > 0):
                    sleeping.lock(fn, pool)
                    sleeping.wake_all(fn, pool)
                    sleeping.unlock(fn, pool)
                fn.call(draw, pool, workspace)
                _close(fn, pool, sleeping)
        fn.finish()
    return fn


def _close(fn: Function, pool: Value, sleeping: Sleeping) -> None:
    """Emit code that lets no more workers join the call, and waits until those at work are done."""
    gate = _word(fn, pool, GATE)
    fn.atomic_and(gate, _PLACE - 1)
    spins = fn.var(I64, 0)
    with fn.loop() as empty:
        fn.leave_if(empty, fn.atomic_load(gate).equals(0))
        fn.pause()
        spins += 1
        with fn.when(spins > _SPINS_BEFORE_YIELD):
            sleeping.let_others_run(fn)


def pack_words(fn: Function, words: list[Operand]) -> Value:
    """Emit the stores of 64-bit words to new stack memory, the context of a task, and return its address."""
    memory = fn.scratch(I64, len(words))
    for index, word in enumerate(words):
        memory[index] = word
    return memory
