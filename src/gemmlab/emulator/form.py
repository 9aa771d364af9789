"""Builder of an instruction's handler: it reads operands in printed order, and writes results.

The same code serves vector and uniform instructions: for uniform ones, `lanes` is 1 and registers are uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import TYPES, Lanes, lane_mask
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES, Status, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, Type, vector
from gemmlab.ir.values import Value
from gemmlab.sass.instruction import Instruction, Operand

REGISTERS = ("reg", "ureg")
PREDICATES = ("pred", "upred")
WRITE = 1
"""Number of the field, in the record of a register or predicate operand, that has the offset in the warp for writes;
field 0 has the offset for reads."""
BASE, UNIFORM_BASE, OFFSET = 0, 1, 2
"""Numbers of the fields in a memory operand's record: offsets in the warp of its vector and its uniform base register,
and the constant offset in bytes."""


class UnsupportedError(UsageError):
    """Error: the emulator does not implement an opcode, an instruction form, or a layout of a tensor map."""


class Form:
    """Builder of the handler of one instruction form, with a cursor over the form's operands."""

    def __init__(self, fn: Function, instruction: Instruction) -> None:
        self.fn = fn
        self.instruction = instruction
        self.modifiers = instruction.modifiers
        warp, insn, execute = fn.args
        self.warp = Raw(fn, warp)
        self.insn = Raw(fn, insn)
        self.exec_bits = execute
        """i32 mask of the lanes that execute."""
        self.uniform = instruction.opcode.startswith("U")
        self.lanes = 1 if self.uniform else LANES
        self._next = 0
        self._status: Value | None = None

    @property
    def launch(self) -> Raw:
        """The `Launch` structure, which all blocks share."""
        return Raw(self.fn, self.fn.cast(self.warp.load(Warp.LAUNCH, I64), I8))

    @property
    def block(self) -> Raw:
        """The `Block` structure of the warp's block."""
        return Raw(self.fn, self.fn.cast(self.warp.load(Warp.BLOCK, I64), I8))

    def service(self, name: str, returns: Type, signature: Sequence[tuple[str, Type]], *args: Value | int) -> Value:
        """Emit a call of a function of `services`; return its result.

        `signature` lists all its arguments. The first two are this warp and instruction, the others are `args`.
        """
        types = [type_ for _label, type_ in signature]
        return self.fn.call_external(name, returns, types, self.warp.base, self.insn.base, *args)

    def pick(self, value: Lanes, lane: Lanes) -> Lanes:
        """Emit code that reads the value of one lane, whose number is known only at run time; return it as a scalar."""
        row = self.fn.scratch(value.value.type.scalar, LANES)
        self.fn.store(row, value.value)
        return Lanes(row[self.fn.zero_extend(lane.value)])

    def first_active(self, value: Lanes) -> Lanes:
        """Emit code that reads the value of the lowest lane that executes; return it as a scalar."""
        return self.pick(value, Lanes(self.exec_bits).call_flag("cttz", flag=False))

    def has(self, *names: str) -> bool:
        """Return whether the instruction has any of these modifiers."""
        return any(name in self.modifiers for name in names)

    def one_of(self, *names: str, default: str = "") -> str:
        """Return the first of `names` that is a modifier of the instruction, else `default`."""
        return next((name for name in names if name in self.modifiers), default)

    def needed(self, *names: str) -> str:
        """Return the first of `names` that is a modifier of the instruction. Raises `UnsupportedError` if none is."""
        found = self.one_of(*names)
        if not found:
            raise self.refuse(f"it needs one of {', '.join(names)}")
        return found

    def allow(self, *modifiers: str, suffixes: Sequence[str] = ()) -> None:
        """Raise `UnsupportedError` if the instruction has other modifiers, or an operand other suffixes (`R2.H1`)."""
        others = [name for name in self.modifiers if name not in modifiers]
        for operand in self.instruction.operands:
            others += [name for name in operand.suffix if name not in suffixes]
        if others:
            raise self.refuse(f"{', '.join(others)} is not understood")

    @property
    def execute(self) -> Lanes:
        """The lanes that execute, as a truth value (i1) for each of the `lanes`."""
        return lane_mask(self.exec_bits, self.lanes)

    def refuse(self, why: str = "") -> UnsupportedError:
        """Return the error for a form that this opcode's function does not handle, with the reason `why`."""
        note = f" ({why})" if why else ""
        return UnsupportedError(f"no meaning for {self.instruction.text!r}{note}")

    # -- operands in order ------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Number of operands after the cursor."""
        return len(self.instruction.operands) - self._next

    def peek(self, ahead: int = 0) -> Operand | None:
        """Return the operand `ahead` places after the cursor, `None` if there is none; the cursor stays."""
        where = self._next + ahead
        return self.instruction.operands[where] if where < len(self.instruction.operands) else None

    def take(self, *kinds: str) -> tuple[Operand, int]:
        """Take the next operand: return it with its record's offset, and advance the cursor.

        Raises `UnsupportedError` if there is none, or if it is not of one of `kinds`; without `kinds` any will do.
        """
        operand = self.peek()
        if operand is None or (kinds and operand.kind not in kinds):
            found = "nothing" if operand is None else f"{operand.text!r}, a {operand.kind}"
            raise self.refuse(f"operand {self._next + 1} is {found}; expected {' or '.join(kinds)}")
        self._next += 1
        return operand, Insn.OPERANDS + (self._next - 1) * Insn.OPERAND_SIZE

    def skip(self) -> Operand:
        """Take an operand that has no effect in the emulator."""
        return self.take()[0]

    def field(self, record: int, number: int = 0) -> Value:
        """Emit a load of i64 field `number` (0 to 3) of an operand's record; return the field.

        `record` is the offset of that record in the instruction's record, as from `take`.
        """
        return self.insn.load(record + 8 * number, I64)

    def constant(self, item: float, kind: str = "i32") -> Lanes:
        """Return a constant in every lane."""
        return Lanes(self.fn.constant(item, vector(TYPES[kind], self.lanes)))

    # -- sources ----------------------------------------------------------------------------------------------

    def source(self, kind: str = "i32", part: int = 0) -> Lanes:
        """Take the next operand as 32 bits of `kind` (`"i32"` or `"f32"`), with its `-`, `|x|` and `~` applied.

        `part` 1 takes the register or constant after the one that the operand names, and so on.
        """
        operand, record = self.take("reg", "ureg", "imm", "const", "pred")
        return self.adjust(operand, self._word(operand, record, part).bits(kind))

    def source_pair(self, kind: str = "i64") -> Lanes:
        """Take the next operand as 64 bits: a register pair, a 64-bit constant, or an immediate.

        An immediate is the upper half of a double for `"f64"`, else it is zero-extended.
        """
        operand, record = self.take("reg", "ureg", "imm", "const")
        low, high = self._word(operand, record, 0), self._word(operand, record, 1)
        if operand.kind == "imm":
            low, high = (low.like(0), low) if kind == "f64" else (low, low.like(0))
        return self.adjust(operand, join(low, high).bits(kind))

    def words(self, count: int) -> list[Lanes]:
        """Take the next operand as `count` consecutive 32-bit registers or constants; its signs are not applied."""
        operand, record = self.take("reg", "ureg", "const")
        return [self._word(operand, record, part) for part in range(count)]

    def adjust(self, operand: Operand, value: Lanes) -> Lanes:
        """Emit code that applies the operand's `|x|`, then its `-` or `~`, to `value`; return the result."""
        floating = value.kind[0] == "f"
        if operand.absolute:
            value = value.call("fabs") if floating else value.lt(0).select(-value, value)
        if operand.neg:
            value = -value
        if operand.invert:
            value = ~value
        return value

    def _word(self, operand: Operand, record: int, part: int) -> Lanes:
        where = self.field(record)
        if operand.kind == "reg":
            if self.uniform:
                raise self.refuse("a vector register on the uniform path")
            return Lanes(self.warp.load(where + part * 128, I32, LANES))
        if operand.kind == "ureg":
            word = Lanes(self.warp.load(where + part * 4, I32))
        elif operand.kind == "imm":
            word = Lanes(self.fn.convert(where, I32))
        elif operand.kind == "const":
            return self._constant_word(operand, record, part)
        else:
            raise self.refuse(f"operand {operand.text!r} has no value")
        return word.splat(self.lanes)

    def _constant_word(self, operand: Operand, record: int, part: int) -> Lanes:
        if operand.base != 255 or operand.ubase != 63 or operand.bank < 0:
            raise self.refuse("an indexed constant operand")
        bank = self.launch.load(Launch.CONSTANT + 8 * operand.bank, I64)
        word = Raw(self.fn, self.fn.cast(bank, I8)).load(self.field(record) + 4 * part, I32)
        return Lanes(word).splat(self.lanes)

    def predicate(self) -> Lanes:
        """Take the next operand, a predicate, as a truth value in each lane (uniform: one value), with `!` applied."""
        operand, record = self.take(*PREDICATES)
        word = self.warp.load(self.field(record), I32)
        value = lane_mask(word, self.lanes)
        return ~value if operand.invert else value

    def predicates(self, most: int = 8) -> list[Lanes]:
        """Take all predicates that follow, at most `most`."""
        found: list[Lanes] = []
        while len(found) < most and (operand := self.peek()) is not None and operand.kind in PREDICATES:
            found.append(self.predicate())
        return found

    def literal(self) -> int:
        """Take the next operand, an immediate, as a number known when the handler is compiled.

        The opcode's `Entry` in `isa.table` must list the operand's position in `literals`.
        """
        operand, _record = self.take("imm")
        return operand.value

    # -- results ----------------------------------------------------------------------------------------------

    def dest(self) -> Result:
        """Take the next operand as a register to write; `.set(value)` writes 32 bits, 64 bits, or a list of words."""
        operand, record = self.take(*REGISTERS)
        return Result(self, operand, record)

    def dest_predicates(self, most: int = 2, least: int = 0) -> list[PredicateResult]:
        """Take the predicates that follow as results, at most `most`. Raises `UnsupportedError` if they are fewer than
        `least`.
        """
        found: list[PredicateResult] = []
        while len(found) < most and (operand := self.peek()) is not None and operand.kind in PREDICATES:
            _operand, record = self.take(*PREDICATES)
            found.append(PredicateResult(self, operand, record))
        if len(found) < least:
            raise self.refuse(f"{len(found)} result predicates, not {least}")
        return found

    def dest_barrier(self) -> Result:
        """Take the next operand as a convergence barrier (B0..B15) to write: a lane mask in every lane."""
        operand, record = self.take("barrier")
        return Result(self, operand, record)

    def status(self, value: Value | int) -> None:
        """Set the handler's return value, a `Status`. Without a call of this method it is `Status.GO`."""
        self._status = self.fn.constant(value, I32)

    def finish(self) -> None:
        """End the handler. Raises `UnsupportedError` if an operand was not taken."""
        if self.left:
            raise self.refuse(f"operand {self._next + 1} is not understood")
        self.fn.finish(self._status if self._status is not None else Status.GO)


@dataclass(frozen=True, slots=True)
class Result:
    """A register or convergence barrier to be written in the lanes that execute; a uniform register has no lanes."""

    form: Form
    operand: Operand
    record: int

    def set(self, value: Lanes | Sequence[Lanes]) -> None:
        """Emit the write of 32 bits, of 64 bits to a register pair, or of a list of words to consecutive registers."""
        if isinstance(value, Lanes):
            value = split(value) if value.width == 64 else [value]
        where = self.form.field(self.record, WRITE)
        for part, word in enumerate(value):
            self._write(where, part, word.bits("i32"))

    def _write(self, where: Value, part: int, word: Lanes) -> None:
        form = self.form
        if self.operand.kind == "ureg":
            form.warp.store(where + part * 4, word.value)
            return
        if word.lanes == 1:
            word = word.splat(LANES)
        address = form.warp.at(where + part * 128, I32)
        old = Lanes(form.fn.load(address, LANES))
        form.fn.store(address, lane_mask(form.exec_bits).select(word, old).value)


@dataclass(frozen=True, slots=True)
class PredicateResult:
    """A predicate operand to be written in the lanes that execute; a uniform predicate is always written."""

    form: Form
    operand: Operand
    record: int

    def set(self, value: Lanes) -> None:
        """Emit the write of a truth value (i1) for each lane."""
        form = self.form
        where = form.field(self.record, WRITE)
        word = value.mask_bits()
        if self.operand.kind == "pred":
            old = Lanes(form.warp.load(where, I32))
            execute = Lanes(form.exec_bits)
            word = (word & execute) | (old & ~execute)
        form.warp.store(where, word.value)


def split(value: Lanes) -> list[Lanes]:
    """Emit code that splits values of 64 bits; return two i32 values: the low words, then the high words."""
    whole = value.bits("i64")
    return [whole.trunc("i32"), (whole >> 32).trunc("i32")]


def join(low: Lanes, high: Lanes) -> Lanes:
    """Emit code that joins low and high words (i32); return the i64 values."""
    return low.zext("i64") | (high.zext("i64") << 32)
