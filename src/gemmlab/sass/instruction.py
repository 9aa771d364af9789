"""Decoded machine instructions of NVIDIA GPUs: opcode, operands and control codes, as nvdisasm prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal[
    "reg", "ureg", "pred", "upred", "barrier", "special", "imm", "const", "mem", "label", "scoreboard", "text"
]
RZ = 255
"""Register that reads as zero and ignores writes."""
STACK_POINTER = 1
"""Register that holds the top of the stack, in code that has one."""
URZ = 63
"""Uniform register that reads as zero; this number stands for it on every architecture."""
PT = 7
"""Number of the predicate that is always true, both `PT` and `UPT`."""
UNRESOLVED = -1
"""`value` of a label outside the function; `bank` of a constant whose bank is in a register, and of a constant or
memory operand in code that is not linked yet.
"""

SourceLine = tuple[str, int]
"""File name as given to the compiler, and line counted from 1."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. The fields that have a meaning depend on `kind`; the others have their defaults.

    - `reg`, `ureg`, `pred`, `upred`: `index`. `barrier` (B0), `scoreboard` (SB0, gsb0): `index`; `name` has the
      letters.
    - `imm`: `value`, the 32-bit pattern (the upper half of a double; for each of two 16-bit floats, its 16 bits; 64
      bits for an integer that does not fit into 32). The sign is part of the pattern, and `neg` stays false. If the
      linker has yet to fill in the value, `name` is its relocation (`"32@lo(table)"`), and `value` is the present
      pattern.
    - `const`: `bank` and `value`, the byte offset; `base` or `ubase` if a register is added. In `cx[UR4][...]` the bank
      is `UNRESOLVED`, `desc` is the uniform register that contains it, and `name` is `"cx"`.
    - `mem`: `base`, `ubase`, `value` (signed byte offset), `desc`; `name` is the prefix before the bracket (`"a"`,
      `"gdesc"`), empty if there is none or it is `desc`. In code that is not linked yet, `name` is the symbol that is
      added, here and in `const`, and `bank` is `UNRESOLVED`.
    - `label`: `name`, and `value`, the byte address within the function or `UNRESOLVED` for an outside symbol.
    - `special`: `name` (`"SR_TID.X"`, `"PR"`). `text`: `name`, a word without structure (`"2D"`).
    """

    kind: Kind
    text: str
    index: int = 0
    value: int = 0
    bank: int = 0
    neg: bool = False
    absolute: bool = False
    invert: bool = False
    """True with `!` before a predicate or `~` before a register."""
    reuse: bool = False
    suffix: tuple[str, ...] = ()
    """Dotted suffixes of the register, other than `reuse`: `("64",)`, `("H0_H0",)`, `("X4",)`."""
    base: int = RZ
    ubase: int = URZ
    desc: int = URZ
    name: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """Control codes of an instruction: the compiler's orders to the logic that issues instructions."""

    stall: int
    """Cycles before the next instruction of the warp may issue."""
    yield_: bool
    """The yield bit as encoded; false asks the scheduler to prefer another warp."""
    write_barrier: int
    """Number of the dependency barrier that is released when the result is written, 7 for none."""
    read_barrier: int
    """Number of the dependency barrier that is released when the operands are read, 7 for none."""
    wait_mask: int
    """Bit i set: wait for dependency barrier i before issue."""
    reuse: int
    """Bit i set: keep source operand i in the operand cache."""

    @staticmethod
    def of(encoding: int) -> Control:
        """Return the control codes of a 128-bit instruction word."""
        return Control(
            stall=encoding >> 105 & 0xF,
            yield_=bool(encoding >> 109 & 1),
            write_barrier=encoding >> 110 & 0x7,
            read_barrier=encoding >> 113 & 0x7,
            wait_mask=encoding >> 116 & 0x3F,
            reuse=encoding >> 122 & 0xF,
        )


@dataclass(frozen=True)
class Instruction:
    """One instruction. `text` is nvdisasm's text for it, without the semicolon and without annotations."""

    address: int
    """Bytes from the start of the function's section."""
    opcode: str
    modifiers: tuple[str, ...]
    predicate: Operand | None
    operands: tuple[Operand, ...]
    control: Control
    encoding: int
    """The 128-bit instruction word; nvdisasm prints its lower half first."""
    line: SourceLine | None
    """Innermost source line: in an inlined function, the line of that function. `None` if nvdisasm shows none."""
    text: str
    targets: tuple[int, ...] = ()
    """Target addresses of an indexed branch, as nvdisasm inferred them."""
    inlined_at: tuple[SourceLine, ...] = ()
    """Lines of the calls through which `line` was inlined, innermost first; empty unless nvdisasm ran with `-gi`."""

    @cached_property
    def name(self) -> str:
        """Opcode with its modifiers, such as `IMAD.WIDE.U32`."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def is_idle(self) -> bool:
        """True with the guard `@!PT`: no lane executes it, as `@!PT LDS RZ, [RZ]`, put around asynchronous copies."""
        guard = self.predicate
        return guard is not None and guard.kind == "pred" and guard.index == PT and guard.invert


@dataclass(frozen=True, slots=True)
class SassFunction:
    """The code of one section: a kernel and the device functions in its section."""

    name: str
    """Mangled name."""
    instructions: tuple[Instruction, ...]
    """Instructions in order; instruction i is at address 16 i."""
    labels: Mapping[str, int]
    """Label or symbol -> byte address; the end of the section is a possible address."""

    def at(self, address: int) -> Instruction:
        """Return the instruction at a byte address. Raises `IndexError` if there is none."""
        if address % 16 or not 0 <= address < 16 * len(self.instructions):
            raise IndexError(f"{self.name}: no instruction at {address:#x}, the last lies at {self._last:#x}")
        return self.instructions[address // 16]

    @property
    def _last(self) -> int:
        return 16 * len(self.instructions) - 16
