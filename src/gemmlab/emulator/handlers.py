"""Handlers: the compiled code of instruction forms, compiled at first use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from gemmlab.emulator.compiled import compiled
from gemmlab.emulator.form import Form
from gemmlab.emulator.isa import table
from gemmlab.emulator.services import service_addresses
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target
from gemmlab.ir.types import I8, I32, pointer
from gemmlab.sass.instruction import Instruction

SIGNATURE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("execute", I32))

_loaded: dict[str, int] = {}


def handler_addresses(instructions: Iterable[Instruction]) -> dict[str, int]:
    """Return the address of the handler of each instruction form, by form key; missing ones are compiled.

    Raises `UnsupportedError` for an instruction or form that the emulator does not know.
    """
    wanted = {table.form_key(instruction): instruction for instruction in instructions}
    for key, instruction in wanted.items():
        if key not in _loaded:
            _loaded[key] = _load(key, instruction)
    return {key: _loaded[key] for key in wanted}


def _load(key: str, instruction: Instruction) -> int:
    symbol = "h_" + hashlib.sha256(key.encode()).hexdigest()[:16]
    return compiled(key, (symbol,), lambda target: _emit(symbol, instruction, target), service_addresses())[symbol]


def _emit(symbol: str, instruction: Instruction, target: Target) -> str:
    module = Module(target)
    with module.function(symbol, SIGNATURE, I32, exported=True) as fn:
        form = Form(fn, instruction)
        table.entry(instruction).meaning(form)
        form.finish()
    return module.text()
