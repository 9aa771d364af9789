"""Control flow, memory, vectors and atomics of the kernel language."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.codegen.packing import transpose
from gemmlab.core.errors import DeviceError
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.ir.types import F32, F64, I8, I32, I64, VOID, vector
from support.jit import FLOATS, WORDS, integers, jit


@pytest.fixture(params=WIDTHS)
def lanes(request: pytest.FixtureRequest) -> int:
    """Each vector width that this processor executes."""
    width = int(request.param)
    try:
        host_target(width)
    except DeviceError as error:
        pytest.skip(str(error))
    return width


def test_a_range_is_pythons() -> None:
    def emit(fn: Function, out: Any, start: Any, stop: Any, step: Any) -> None:
        count = fn.var(I64, 0)
        with fn.range(start, stop, step) as i:
            out[count] = i
            count += 1
        fn.finish(count)

    compiled = jit(emit, [WORDS, I64, I64, I64], I64)
    out = np.zeros(64, np.int64)

    @settings(max_examples=200)
    @given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 25))
    def same(start: int, stop: int, step: int) -> None:
        count = compiled(out.ctypes.data, start, stop, step)
        assert out[:count].tolist() == list(range(start, stop, step))

    same()


def test_loops_nest_and_are_left_from_inside() -> None:
    def emit(fn: Function, n: Any, limit: Any) -> None:
        total = fn.var(I64, 0)
        with fn.loop() as outer:
            with fn.range(n) as i, fn.range(i) as j, fn.when((i + j) % 2 < 1):
                total += j
            fn.leave_if(outer, total >= limit)
            total += 1
        fn.finish(total)

    compiled = jit(emit, [I64, I64], I64)
    for n, limit in ((0, 5), (5, 0), (6, 40)):
        total = 0
        while True:
            total += sum(j for i in range(n) for j in range(i) if (i + j) % 2 == 0)
            if total >= limit:
                break
            total += 1
        assert compiled(n, limit) == total


def test_only_the_chosen_arm_runs_and_what_it_sets_lasts() -> None:
    def emit(fn: Function, x: Any, y: Any) -> None:
        result = fn.var(I64, 100)
        with fn.choose(x < y) as which:
            with which.yes():
                result.set(1)
                with fn.when(x < 0):
                    result += 10
            with which.no():
                result.set(result + 2)
                with fn.when(x > 50):
                    fn.ret(-1)
        fn.finish(result)

    compiled = jit(emit, [I64, I64], I64)
    assert [compiled(x, y) for x, y in ((1, 2), (-1, 2), (2, 1), (51, 1))] == [1, 11, 102, -1]


def test_a_variable_in_a_loop_starts_anew_each_time() -> None:
    def emit(fn: Function, n: Any, _unused: Any) -> Any:
        total = fn.var(I64, 0)
        with fn.range(n):
            inner = fn.var(I64, 5)
            inner += 1
            total += inner
        return total

    assert integers(emit)(4, 0) == 24


def test_functions_call_each_other_directly_by_table_and_by_address() -> None:
    module = Module(host_target())
    made = []
    for name, factor in (("double", 2), ("triple", 3)):
        with module.function(name, [("x", I64)], I64) as fn:
            fn.finish(fn.args[0] * factor)
        made.append(fn)
    table = module.table("both", made)
    with module.function("under_test", [("x", I64)], I64, exported=True) as fn:
        x = fn.args[0]
        one = fn.call_pointer(fn.table_entry(table, x & 1), I64, (I64,), x)
        two = fn.call_pointer(fn.function_address(made[1]), I64, (I64,), x)
        fn.finish(one * 1000 + two * 10 + fn.call(module["double"], 2))
    import ctypes

    loaded = load_object(compile_object(module.text(), module.target), ["under_test"])
    compiled = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.addresses["under_test"])
    assert [compiled(x) for x in (4, 5)] == [8124, 15154]
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"), module.function("wrong", []) as fn:
        fn.call(module["double"], 1, 2)


def test_c_functions_of_the_process_can_be_called() -> None:
    compiled = integers(lambda fn, x, _y: fn.convert(fn.call_external("abs", I32, (I32,), fn.convert(x, I32)), I64))
    assert compiled(-17, 0) == 17


def test_masked_loads_and_stores_touch_only_their_lanes(lanes: int) -> None:
    def emit(fn: Function, source: Any, target: Any, count: Any) -> None:
        mask = fn.first_lanes(count, lanes)
        fn.store(target, fn.load(source, lanes, mask) + 1.0, mask)
        fn.store(target + 32, fn.load(source, lanes, mask))
        fn.finish()

    compiled = jit(emit, [FLOATS, FLOATS, I64], lanes=lanes)
    source = np.arange(10, 10 + lanes, dtype=np.float32)
    for count in range(-1, lanes + 3):
        target = np.full(64, -5, np.float32)
        compiled(source.ctypes.data, target.ctypes.data, count)
        inside = min(max(count, 0), lanes)
        assert target[:lanes].tolist() == [*(source[:inside] + 1), *[-5] * (lanes - inside)]
        assert target[32 : 32 + lanes].tolist() == [*source[:inside], *[0] * (lanes - inside)]
        assert (target[lanes:32] == -5).all()


def test_floats_may_lie_at_any_address(lanes: int) -> None:
    def emit(fn: Function, source: Any, target: Any) -> None:
        fn.store(target, fn.load(source, lanes))
        fn.finish()

    memory = np.zeros(4 * lanes * 2 + 8, np.uint8)
    values = np.arange(lanes, dtype=np.float32)
    memory[3 : 3 + 4 * lanes] = values.view(np.uint8)
    target = 4 * lanes + 5
    jit(emit, [FLOATS, FLOATS], lanes=lanes)(memory.ctypes.data + 3, memory.ctypes.data + target)
    assert memory[target - 1] == 0
    assert memory[target : target + 4 * lanes].tobytes() == values.tobytes()


def test_shuffles_pick_from_two_vectors(lanes: int) -> None:
    pattern = [(5 * index + 3) % (2 * lanes) for index in range(lanes)]

    def emit(fn: Function, source: Any, target: Any) -> None:
        left, right = fn.load(source, lanes), fn.load(source + lanes, lanes)
        fn.store(target, fn.shuffle(left, right, pattern))
        fn.store(target + lanes, fn.shuffle(left, right, [2]))
        fn.finish()

    source, target = np.arange(2 * lanes, dtype=np.float32), np.full(lanes + 1, -1, np.float32)
    jit(emit, [FLOATS, FLOATS], lanes=lanes)(source.ctypes.data, target.ctypes.data)
    assert target.tolist() == [*pattern, 2]


def test_transpositions_in_registers(lanes: int) -> None:
    def emit(fn: Function, source: Any, target: Any) -> None:
        for index, row in enumerate(transpose(fn, [fn.load(source + r * lanes, lanes) for r in range(lanes)])):
            fn.store(target + index * lanes, row)
        fn.finish()

    source = np.arange(lanes * lanes, dtype=np.float32).reshape(lanes, lanes)
    target = np.zeros_like(source)
    jit(emit, [FLOATS, FLOATS], lanes=lanes)(source.ctypes.data, target.ctypes.data)
    assert target.tolist() == source.T.tolist()


def test_lanes_are_summed_in_halves(lanes: int) -> None:
    compiled = jit(lambda fn, source: fn.finish(fn.lane_sum(fn.load(source, lanes))), [FLOATS], F32, lanes)
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = np.ldexp(rng.random(lanes), rng.integers(-12, 12, lanes)).astype(np.float32)
        halves = values
        while halves.size > 1:
            halves = halves[: halves.size // 2] + halves[halves.size // 2 :]
        assert compiled(values.ctypes.data) == float(halves[0])


def test_a_scalar_meets_a_vector_as_its_splat(lanes: int) -> None:
    def emit(fn: Function, source: Any, factor: Any, target: Any) -> None:
        row = fn.load(source, lanes)
        total = fn.var(vector(F32, lanes), 1.0)
        total.set(fn.fma(factor, row, total.read()))
        fn.pin([total])
        fn.store(target, total.read() + factor * row)
        fn.finish()

    source, target = np.arange(lanes, dtype=np.float32), np.zeros(lanes, np.float32)
    jit(emit, [FLOATS, F32, FLOATS], VOID, lanes)(source.ctypes.data, 2.0, target.ctypes.data)
    assert target.tolist() == [1 + 4 * value for value in range(lanes)]


def test_scratch_memory_belongs_to_the_call() -> None:
    def emit(fn: Function, n: Any, _unused: Any) -> Any:
        inside = fn.scratch(F64, 8)
        with fn.range(8) as i:
            inside[i] = 0.5
        total = fn.var(F64, 0.0)
        with fn.range(8) as i:
            total.set(total + inside[i])
        return fn.select(total.equals(4.0), n, -1)

    assert integers(emit)(33, 0) == 33


def test_atomics_lose_nothing_between_threads() -> None:
    rounds = 1_000_000

    def emit(fn: Function, word: Any) -> None:
        with fn.range(rounds):
            fn.atomic_add(word, 3)
            with fn.loop() as done:
                old = fn.atomic_load(word + 1)
                fn.leave_if(done, fn.compare_exchange(word + 1, old, old + 1))
                fn.pause()
        fn.finish()

    compiled = jit(emit, [WORDS])
    words = np.zeros(2, np.int64)
    threads = [threading.Thread(target=compiled, args=(words.ctypes.data,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words.tolist() == [6 * rounds, 2 * rounds]


def test_atomics_tell_what_was_there() -> None:
    def emit(fn: Function, word: Any, out: Any) -> None:
        out[0] = fn.atomic_add(word, 5)
        out[1] = fn.atomic_and(word, 12)
        out[2] = fn.zero_extend(fn.compare_exchange(word, 99, 1))
        out[3] = fn.zero_extend(fn.compare_exchange(word, 12, 1))
        fn.atomic_store(word, fn.atomic_load(word) + 6)
        fn.finish()

    words = np.array([10, 0, 0, 0, 0], np.int64)
    jit(emit, [WORDS, WORDS])(words.ctypes.data, words.ctypes.data + 8)
    assert words.tolist() == [7, 10, 15, 0, 1]


def test_bytes_can_be_addressed() -> None:
    def emit(fn: Function, words: Any) -> None:
        fn.cast(words, I8)[3] = fn.convert(fn.index(7), I8)
        fn.finish()

    words = np.zeros(1, np.int64)
    jit(emit, [WORDS])(words.ctypes.data)
    assert words.view(np.uint8).tolist() == [0, 0, 0, 7, 0, 0, 0, 0]
