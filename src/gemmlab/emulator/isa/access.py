"""Loads and stores of global, shared and local memory, and of constants at computed addresses."""

from __future__ import annotations

from gemmlab.emulator.address_space import ACCESS, STORE, bit_of
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import BASE, OFFSET, UNIFORM_BASE, Form, join
from gemmlab.emulator.instruction_layout import Kind, Space
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, gather, lane_mask
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, RANK_BITS, SHARED_WINDOW, VARIABLES, Launch
from gemmlab.emulator.layout import LANES, ROW, Block
from gemmlab.ir.types import I8, I16, I32, I64, VOID
from gemmlab.ir.values import Value
from gemmlab.sass.instruction import RZ, URZ

WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16}
SPACE = {
    "LDG": "global", "LDS": "shared", "LDL": "local", "LD": "",
    "STG": "global", "STS": "shared", "STL": "local", "ST": "",
}  # fmt: skip
"""Memory space by opcode; `""` for opcodes with generic addresses."""
SCALES = {"X4": 2, "X8": 3, "X16": 4}


def width_of(x: Form) -> int:
    """Return the bytes that an access reads or writes for each lane."""
    return WIDTHS[x.one_of(*WIDTHS, default="32")]


def addresses(x: Form, space: str) -> Lanes:
    """Take the next operand, which must be a memory operand, as 64-bit addresses in `space`.

    Shared and local addresses have 32 bits in registers. A global one is a pair of registers if it is marked as 64
    bits, or if there is no uniform base; never if it is marked `.U32`.
    """
    operand, record = x.take("mem")
    offset = Lanes(x.field(record, OFFSET))
    where = x.field(record, BASE)
    low = Lanes(x.warp.load(where, I32, LANES))
    for name, shift in SCALES.items():
        if name in operand.suffix:
            low = low << shift
    uniform = x.field(record, UNIFORM_BASE)
    base = Lanes(x.warp.load(uniform, I32)).zext("i64")
    if space == "global":
        if operand.ubase != URZ:
            base = base | (Lanes(x.warp.load(uniform + 4, I32)).zext("i64") << 32)
        pair = "64" in operand.suffix or operand.ubase == URZ
        if pair and "U32" not in operand.suffix:
            low64 = join(low, Lanes(x.warp.load(where + ROW, I32, LANES)))
        else:
            low64 = low.zext("i64")
        return low64 + (base + offset).splat(LANES)
    return (low + (base + offset).trunc("i32").splat(LANES)).zext("i64")


def call_access(x: Form, name: str, lanes: Value, where: Lanes, words: Value, key: Value | int) -> Lanes:
    """Emit a call of the service `name` for a load or store; return its mask (`memory_access.emit_access`).

    `lanes` is the mask of the lanes that access memory, `where` their addresses.
    """
    row = x.fn.scratch(I64, LANES)
    x.fn.store(row, where.value)
    return Lanes(x.service(name, I32, ACCESS, lanes, row, words, key))


@opcode("LDG", "LDS", "LDL", "LD")
def load(x: Form) -> None:
    """Load a register, pair or quadruple from each lane's address; 8 and 16 bits are extended as for their type."""
    d = x.dest()
    space = SPACE[x.instruction.opcode]
    where = addresses(x, space or "global")
    passed_over(x)
    width = width_of(x)
    count = max(1, width // 4)
    rows = x.fn.scratch(I32, LANES * count)
    if space:
        call_access(x, f"load_{space}", x.exec_bits, where, rows, width)
        words = [Lanes(x.fn.load(rows + LANES * part, LANES)) for part in range(count)]
    else:
        words = _generic_load(x, where, rows, width)
    if x.has("S8", "S16"):
        bits = 8 * width
        words = [(words[0] << (32 - bits)).arithmetic_shift(32 - bits)]
    d.set(words)


@opcode("STG", "STS", "STL", "ST")
def store(x: Form) -> None:
    """Store a register, pair or quadruple to each lane's address."""
    space = SPACE[x.instruction.opcode]
    where = addresses(x, space or "global")
    width = width_of(x)
    count = max(1, width // 4)
    rows = x.fn.scratch(I32, LANES * count)
    for part, word in enumerate(x.words(count)):
        x.fn.store(rows + LANES * part, word.splat(LANES).value)
    passed_over(x)
    if space:
        call_access(x, f"store_{space}", x.exec_bits, where, rows, width + STORE)
        return
    for name, lanes, short in by_space(x, where):
        with x.fn.when(lanes.ne(0).value):
            call_access(x, f"store_{name}", lanes.value, short, rows, width + STORE)


def _generic_load(x: Form, where: Lanes, rows: Value, width: int) -> list[Lanes]:
    count = max(1, width // 4)
    words = [x.constant(0)] * count
    for name, lanes, short in by_space(x, where):
        with x.fn.when(lanes.ne(0).value):
            call_access(x, f"load_{name}", lanes.value, short, rows, width)
        mine = lane_mask(lanes.value)
        words = [mine.select(Lanes(x.fn.load(rows + LANES * part, LANES)), words[part]) for part in range(count)]
    return words


def by_space(x: Form, where: Lanes) -> list[tuple[str, Lanes, Lanes]]:
    """Split generic addresses by space: (space, mask of the lanes in it, their addresses within it)."""
    upper, short = where >> 32, where & 0xFFFFFFFF
    shared, local = upper.eq(SHARED_WINDOW) & x.execute, upper.eq(LOCAL_WINDOW) & x.execute
    rest = x.execute & ~shared & ~local
    return [
        ("global", rest.mask_bits(), where),
        ("shared", shared.mask_bits(), short),
        ("local", local.mask_bits(), short),
    ]


def passed_over(x: Form) -> None:
    """Skip the operands after those of an access: cache policies, and predicates that compilers always set to true.

    An operand of another kind, or an inverted one, is refused.
    """
    while (operand := x.peek()) is not None:
        if operand.kind not in {"pred", "ureg", "reg"} or operand.invert:
            raise x.refuse(f"operand {operand.text!r}")
        x.skip()


@opcode("QSPC")
def qspc(x: Form) -> None:
    """Test if a generic address is in local (`L`) or global memory (`G`), or in shared memory.

    `S` is true for shared memory of the thread's own block, `D` for that of any block of the cluster.
    """
    results = x.dest_predicates(1)
    x.dest()
    _operand, record = x.take("mem")
    where = x.field(record, BASE)
    upper = Lanes(x.warp.load(where + ROW, I32, LANES))
    shared, local = upper.eq(SHARED_WINDOW), upper.eq(LOCAL_WINDOW)
    rank = Lanes(x.warp.load(where, I32, LANES)) >> RANK_BITS
    own = rank.eq(Lanes(x.block.load(Block.RANK, I64)).trunc("i32").splat(LANES))
    name = x.needed("S", "L", "G", "D")
    answer = {"S": shared & own, "L": local, "G": ~(shared | local), "D": shared}[name]
    for result in results:
        result.set(answer)


@opcode("LDC", "ULDC")
def ldc(x: Form) -> None:
    """Load constants, `c[bank][register + offset]`, of 8 to 64 bits; 0 beyond the bank."""
    d = x.dest()
    operand, record = x.take("const")
    if operand.bank < 0:
        raise x.refuse("a constant bank in a register")
    width = WIDTHS[x.one_of(*WIDTHS, default="32")]
    bank = x.launch.load(Launch.CONSTANT + 8 * operand.bank, I64)
    offset = Lanes(x.field(record)).trunc("i32") + Lanes(x.warp.load(x.field(record, 2), I32))
    if operand.base == RZ:
        if operand.bank == VARIABLES and operand.ubase != URZ:
            _within_variables(x, offset, width)
        d.set([word.splat(x.lanes) for word in _constants(x, bank, offset, width)])
        return
    where = offset.splat(LANES) + Lanes(x.warp.load(x.field(record, 1), I32, LANES))
    if operand.bank == VARIABLES:
        _within_variables(x, where, width)
    each = [where.lane(lane) for lane in range(LANES)]
    words = [_constants(x, bank, one, width) for one in each]
    d.set([gather([word[part] for word in words]) for part in range(len(words[0]))])


def _within_variables(x: Form, offset: Lanes, width: int) -> None:
    """Emit code that records an event for each lane that reads outside the `__constant__` variables."""
    used = Lanes(x.launch.load(Launch.CONSTANT_USED, I64)).splat(offset.lanes)
    wide = offset.zext("i64")
    outside = (wide + width).ugt(used) & (x.execute if offset.lanes > 1 else Lanes(x.exec_bits).ne(0))
    bits = outside.mask_bits() & (-1 if offset.lanes > 1 else 1)
    with x.fn.when(bits.ne(0).value):
        spots = x.fn.scratch(I64, LANES)
        x.fn.store(spots, wide.splat(LANES).value)
        with x.fn.range(LANES) as lane, x.fn.when(bit_of(x.fn, bits.value, lane)):
            extra = width + Space.CONSTANT * 65536
            x.service("note", VOID, NOTE, Kind.OUT_OF_BOUNDS, lane, spots[lane], extra, -1)


def _constants(x: Form, bank: Value, offset: Lanes, width: int) -> list[Lanes]:
    """Return one lane's constant as 32-bit words."""
    inside = offset.ule(Launch.BANK_BYTES - width)
    place = x.fn.cast(bank + inside.select(offset, 0).zext("i64").value, I8)
    if width < 4:
        narrow = Lanes(x.fn.load(x.fn.cast(place, I8 if width == 1 else I16)))
        whole = narrow.sext("i32") if x.has("S8", "S16") else narrow.zext("i32")
        return [inside.select(whole, 0)]
    return [inside.select(Lanes(x.fn.cast(place, I32)[part]), 0) for part in range(width // 4)]
