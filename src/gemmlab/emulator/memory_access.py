"""Loads and stores of a warp: all lanes at once if no lane is a special case, else lane by lane (`memory_lanes`)."""

from __future__ import annotations

from gemmlab.emulator.address_space import translate
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import Block, Warp
from gemmlab.emulator.memo import Memo
from gemmlab.emulator.memory_counts import counted
from gemmlab.emulator.memory_vectors import Move, serve_whole
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64


def emit_access(fn: Function, module: Module, space: str, *, store: bool) -> None:
    """Emit the body of `load_SPACE` or `store_SPACE`; its arguments are `ACCESS`.

    The function returns a mask: for a load all lanes that execute, for a store those of them whose access was in bounds
    and aligned. A load gives zeros in the lanes that execute and whose access is out of bounds or misaligned.
    """
    warp_ptr, insn_ptr, execute, _addresses, words, key = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    pattern = counted(fn, module, space)
    insn.add(Insn.REQUESTS, 1)
    if space == "shared":
        _check_races(fn, module, warp)
    if space == "global":
        launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
        with fn.when(launch.load(Launch.RACES, I64).differs(0)):
            fn.call(module["global_race"], *fn.args, insn.load(Insn.STRONG))
    low, highest = insn.load(Memo.LOWEST, I64), insn.load(Memo.HIGHEST, I64)
    width = Lanes(key) & 255
    place = translate(fn, warp, space, pattern.base, low, highest + fn.zero_extend(width.value), fn.constant(0, I64))
    ordinary = Lanes(place.inside) & ~pattern.far & Lanes(insn.load(Memo.MISALIGNED)).eq(0) & width.uge(4)
    if space == "local":
        ordinary = ordinary & ordinary.like(0)
    done = fn.var(I32, 0)
    with fn.when(ordinary.value):
        serve_whole(Move(fn, insn, place, pattern.relative, lane_mask(execute), words, width, done), store=store)
    with fn.when(Lanes(done.read()).eq(0).value):
        name = f"slow_{'store' if store else 'load'}_{space}"
        done.set(fn.call(module[name], *fn.args))
    if store and space != "local":
        block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
        block.add(Block.EPOCH, 1)
    fn.finish(done.read())


def _check_races(fn: Function, module: Module, warp: Raw) -> None:
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        warp_ptr, insn, execute, addresses, words, key = fn.args
        fn.call(module["race"], warp_ptr, insn, execute, addresses, words, key)
        with fn.when(block.load(Block.FOREIGN, I64).differs(0)):
            fn.call(module["cluster_race"], *fn.args, Raw(fn, insn).load(Insn.STRONG))
