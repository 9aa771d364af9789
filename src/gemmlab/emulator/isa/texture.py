"""Fetches of single texels from one-dimensional textures over linear memory (`tex1Dfetch`)."""

from __future__ import annotations

from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.isa.access import call_access
from gemmlab.emulator.isa.each_lane import row
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.launch_layout import Launch, Texture
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.memory_lanes import POISON
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.small_floats import half_of
from gemmlab.ir.types import I8, I32, I64, VOID
from gemmlab.ir.values import Value

COMPONENTS = 4


@opcode("TLD", literals=(3, 4, -1))
def tld(x: Form) -> None:
    """Fetch a texel. The first two components in the mask are written to the second register operand and the register
    after it, the others to the first register operand and the register after it.

    A texel out of range is zero. Components that the texture lacks are NaN, because it is not documented what a GPU
    returns.
    """
    x.allow("LZ", "SCR", "B")
    rest, first = x.dest(), x.dest()
    index, handle = x.source(), _handle(x)
    shape, _record = x.take("text")
    if shape.text != "1D":
        raise x.refuse(f"a texture of shape {shape.text}")
    mask = x.literal() if x.left else (1 << COMPONENTS) - 1
    rows = x.fn.scratch(I32, LANES * COMPONENTS)
    for component in range(COMPONENTS):
        x.fn.store(rows + LANES * component, x.constant(0).value)
    _fetch_all(x, index, handle, rows)
    chosen = [Lanes(x.fn.load(rows + LANES * part, LANES)) for part in range(COMPONENTS) if mask >> part & 1]
    first.set(chosen[:2])
    rest.set(chosen[2:])


def _handle(x: Form) -> Lanes:
    """Take the lower word of the texture object from an operand of any kind; the upper word is not used."""
    operand = x.peek()
    if operand is not None and operand.kind == "imm":
        # Two operands are an address in the constant banks: the bank, then the word in it.
        bank, word = x.literal(), x.literal()
        if not (0 <= bank < Launch.BANKS and 0 <= 4 * word < Launch.BANK_BYTES):
            raise x.refuse("a texture object in no constant bank")
        where = Raw(x.fn, x.fn.cast(x.launch.load(Launch.CONSTANT + 8 * bank, I64), I8))
        return Lanes(where.load(4 * word, I32)).splat(LANES)
    found = x.source().splat(LANES)
    if operand is not None and operand.kind == "ureg" and x.literal() != 0:
        raise x.refuse("an offset to a texture object")
    return found


def _fetch_all(x: Form, index: Lanes, handle: Lanes, rows: Value) -> None:
    """Emit the fetch for all lanes that execute; lanes with the same texture are one request."""
    fn, handles = x.fn, row(x, handle)
    left = fn.var(I32, x.exec_bits)
    with fn.range(LANES) as lane, fn.when(((Lanes(left.read()) >> Lanes(fn.convert(lane, I32))) & 1).ne(0).value):
        mine = Lanes(handles[lane])
        group = handle.eq(mine.splat(LANES)).mask_bits() & Lanes(left.read())
        left.set((Lanes(left.read()) & ~group).value)
        known = mine.ult(Texture.COUNT)
        number = known.select(mine, 0).zext("i64").value
        entry = Raw(fn, fn.cast(x.launch.load(Launch.TEXTURES, I64), I8) + number * Texture.SIZE)
        x.insn.add(Insn.REQUESTS, 1)
        with fn.choose(entry.load(Texture.TEXELS, I64).differs(0)) as choice:
            with choice.yes():
                _fetch(x, entry, index, group, rows)
            with choice.no():
                x.service("note", VOID, NOTE, Kind.TEXTURE, lane, mine.zext("i64").value, 0, -1)


def _fetch(x: Form, entry: Raw, index: Lanes, group: Lanes, rows: Value) -> None:
    """Emit loads of the texels of the lanes in `group`, all of one texture, into their lanes of `rows`."""
    fn = x.fn
    channels, element = (Lanes(entry.load(at, I64)).trunc("i32") for at in (Texture.CHANNELS, Texture.ELEMENT))
    width = channels << element.eq(0).select(element.like(2), 1)
    base, texels = (Lanes(entry.load(at, I64)).splat(LANES) for at in (Texture.BASE, Texture.TEXELS))
    place = index.zext("i64")
    inside = place.ult(texels).mask_bits() & group
    with fn.when(inside.ne(0).value):
        words = fn.scratch(I32, LANES * COMPONENTS)
        where = base + place * width.zext("i64").splat(LANES)
        call_access(x, "load_global", inside.value, where, words, width.value)
        # `_fetch_all` has counted this request already, and the load service counts it again.
        x.insn.add(Insn.REQUESTS, -1)
        on = lane_mask(inside.value)
        for component in range(COMPONENTS):
            value = _component(x, words, component, element)
            value = channels.ugt(component).splat(LANES).select(value, POISON)
            old = Lanes(fn.load(rows + LANES * component, LANES))
            fn.store(rows + LANES * component, on.select(value, old).value)


def _component(x: Form, words: Value, component: int, element: Lanes) -> Lanes:
    """Return one component of a texel as a 32-bit register value.

    `element` is the index of its type in `Texture.ELEMENTS`.
    """
    word = Lanes(x.fn.load(words + LANES * component, LANES))
    pair = Lanes(x.fn.load(words + LANES * (component // 2), LANES))
    bits = (pair >> 16 * (component % 2)) & 0xFFFF
    forms = {
        "f32": word,
        "f16": half_of(bits, 0).bits("i32"),
        "u16": bits,
        "s16": (bits << 16).arithmetic_shift(16),
    }
    value = word
    for number, name in enumerate(Texture.ELEMENTS):
        value = element.eq(number).splat(LANES).select(forms[name], value)
    return value
