"""AMX's instructions on tiles as functions in plain LLVM IR, for processors without them.

Each thread has its own eight tiles, from `ldtilecfg` to `tilerelease`. A table has a place for each such thread, of two
words: the address by which the system knows the thread (0: the place is free), and the address of its tiles. An
instruction of a thread without tiles ends the process, as the processor would, and so does `ldtilecfg` for another
shape than eight full tiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from gemmlab.codegen.amx.tile_registers import DEPTH, REGISTERS, ROW_BYTES, ROWS, TILE_BYTES
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, I8, I32, I64, VOID, Type, pointer, vector
from gemmlab.ir.values import Value

SIMULATED = "simulated_"
"""What the functions' names begin with; the names of LLVM's intrinsics begin with `llvm.x86.` instead."""
_NAMES = ("ldtilecfg", "tilerelease", "tilezero", "tileloadd64", "tilestored64", "tdpbf16ps")
_COUNT = "threads_with_tiles"
_PLACES, _PLACE_WORDS = 1024, 2
_FULL = (1, 0, *[ROW_BYTES * 0x0001_0001_0001_0001] * 2, 0, 0, ROWS * 0x0101_0101_0101_0101, 0)
"""The words of the shape: palette 1, the bytes of a row of each tile in 16 bits, the rows of each tile in 8 bits."""
_BYTES, _WORDS, _FLOATS = pointer(I8), vector(I32, ROWS), vector(F32, ROWS)
_SIGN, _EXPONENT, _UPPER = -0x80000000, 0x7F800000, -0x10000


def renamed(text: str) -> str:
    """Return LLVM IR that calls the functions instead of the intrinsics."""
    for name in _NAMES:
        text = text.replace(f"@llvm.x86.{name}(", f"@{SIMULATED}{name}(")
    return text


@cache
def tile_instructions() -> Mapping[str, int]:
    """Return the addresses of the functions by name, compiled and linked once in a process."""
    module = Module(host_target())
    module.variable("places", f"internal global [{_PLACES * _PLACE_WORDS} x i64] zeroinitializer, align 64")
    _emit_state(module)
    _emit_copies(module)
    _emit_product(module)
    symbols = [*(f"{SIMULATED}{name}" for name in _NAMES), _COUNT]
    return load_object(compile_object(module.text(), module.target), symbols).addresses


def threads_with_tiles() -> int:
    """Return the number of threads that have tiles now."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(tile_instructions()[_COUNT])())


def _place(fn: Function, index: Value) -> Value:
    return fn.symbol("@places", I64) + index * _PLACE_WORDS


def _thread(fn: Function) -> Value:
    """Emit the load of the address by which Linux on x86-64 knows the thread that runs: the word at fs:0."""
    return fn.emit(I64, "load i64, ptr addrspace(257) null")


def _stop(fn: Function) -> None:
    fn.call_external("abort", VOID, ())


def _emit_state(module: Module) -> None:
    with module.function("place_of_thread", [], I64) as find:
        thread = _thread(find)
        with find.range(_PLACES) as index, find.when(find.atomic_load(_place(find, index)).equals(thread)):
            find.ret(index)
        _stop(find)
        find.finish(0)
    with module.function(f"{SIMULATED}ldtilecfg", [("shape", pointer(I64))], exported=True) as fn:
        for at, word in enumerate(_FULL):
            with fn.when(fn.args[0][at].differs(word)):
                _stop(fn)
        tiles = fn.call_external("calloc", I64, (I64, I64), REGISTERS, TILE_BYTES)
        with fn.range(_PLACES) as index:
            place = _place(fn, index)
            with fn.when(fn.compare_exchange(place, 0, _thread(fn))):
                place[1] = tiles
                fn.ret()
        _stop(fn)
        fn.finish()
    with module.function(f"{SIMULATED}tilerelease", [], exported=True) as fn:
        place = _place(fn, fn.call(find))
        fn.call_external("free", VOID, (I64,), place[1])
        fn.atomic_store(place, 0)
        fn.finish()
    with module.function(_COUNT, [], I64, exported=True) as fn:
        count = fn.var(I64, 0)
        with fn.range(_PLACES) as index:
            count += fn.zero_extend(fn.atomic_load(_place(fn, index)).differs(0))
        fn.finish(count.read())


def _tile(module: Module, fn: Function, number: Value, element: Type) -> Value:
    """Emit the search for a tile of the thread that runs; return its address as a pointer to `element`."""
    tiles = _place(fn, fn.call(module["place_of_thread"]))[1]
    return fn.cast(tiles + fn.zero_extend(number) * TILE_BYTES, element)


def _emit_copies(module: Module) -> None:
    with module.function(f"{SIMULATED}tilezero", [("tile", I8)], exported=True) as fn:
        tile = _tile(module, fn, fn.args[0], I32)
        with fn.range(0, ROWS * ROWS, ROWS) as word:
            fn.store(tile + word, fn.constant(0, _WORDS))
        fn.finish()
    for name, out in (("tileloadd64", False), ("tilestored64", True)):
        signature = [("tile", I8), ("memory", _BYTES), ("row_bytes", I64)]
        with module.function(f"{SIMULATED}{name}", signature, exported=True) as fn:
            number, memory, row_bytes = fn.args
            tile = _tile(module, fn, number, I32)
            with fn.range(ROWS) as row:
                places = tile + row * ROWS, fn.cast(memory + row_bytes * row, I32)
                source, to = places if out else places[::-1]
                fn.store(to, fn.load(source, ROWS))
            fn.finish()


def _emit_product(module: Module) -> None:
    """Emit TDPBF16PS for each row: chains over the lower and the upper halves of words, their sum, and C."""
    numbers = [("into", I8), ("left", I8), ("right", I8)]
    with module.function(f"{SIMULATED}tdpbf16ps", numbers, exported=True) as fn:
        c, a, b = (_tile(module, fn, number, I32) for number in fn.args)
        with fn.range(ROWS) as row:
            chains = [fn.var(_FLOATS, 0.0) for _half in range(2)]
            with fn.range(DEPTH // 2) as pair:
                words = fn.splat((a + row * ROWS)[pair], ROWS), fn.load(b + pair * ROWS, ROWS)
                lower, upper = [word << 16 for word in words], [word & _UPPER for word in words]
                for chain, halves in zip(chains, (lower, upper), strict=True):
                    left, right = (_flushed(fn, _as(fn, half, _FLOATS)) for half in halves)
                    chain.set(_flushed(fn, fn.fma(left, right, chain.read())))
            place = fn.cast(c + row * ROWS, F32)
            both = _flushed(fn, chains[0] + chains[1])
            fn.store(place, _flushed(fn, _flushed(fn, fn.load(place, ROWS)) + both))
        fn.finish()


def _flushed(fn: Function, floats: Value) -> Value:
    """Emit the replacement of subnormal numbers by zeros of the same sign."""
    bits = _as(fn, floats, _WORDS)
    normal = (bits & _EXPONENT).differs(0)
    return _as(fn, fn.select(normal, bits, bits & _SIGN, _WORDS), _FLOATS)


def _as(fn: Function, value: Value, type_: Type) -> Value:
    """Return the same bits as a value of another type."""
    return fn.emit(type_, f"bitcast {value.type} {value.name} to {type_}")
