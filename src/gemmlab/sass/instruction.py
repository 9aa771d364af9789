"""One decoded machine instruction of an NVIDIA GPU: opcode, operands, control codes, as nvdisasm prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal[
    "reg", "ureg", "pred", "upred", "barrier", "special", "imm", "const", "mem", "label", "scoreboard", "text"
]
RZ = 255
"""Register that reads as zero and drops what is written."""
URZ = 63
"""Uniform register that reads as zero, whatever number the architecture gives it."""
PT = 7
"""Predicate that is always true, in both files."""
UNRESOLVED = -1
"""Value of a label that lies in no part of the function, and bank of a constant whose bank is in a register."""

SourceLine = tuple[str, int]
"""File as the compiler was given it, line counted from 1."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. Which fields mean something depends on `kind`; the others keep their defaults.

    - `reg`, `ureg`, `pred`, `upred`, `barrier` (B0), `scoreboard` (SB0): `index`.
    - `imm`: `value`, the 32-bit pattern (the upper half of a double; of a pair of 16-bit floats its own 16 bits).
      The sign is part of the pattern, `neg` stays false. Where a linker has still to fill it in, `name` says what with
      (`"32@lo(table)"`) and `value` is what the code holds now.
    - `const`: `bank` and `value`, the byte offset; `base` or `ubase` where a register is added. In `cx[UR4][...]`
      the bank is `UNRESOLVED` and `desc` the uniform register that holds it.
    - `mem`: `base`, `ubase`, `value` (signed byte offset), `desc`; `name` is what stands before the bracket other than
      `desc` (`"a"`, `"gdesc"`), else empty. Code that is not linked yet adds symbols: here and in `const` the symbol is
      then the `name`, and the bank `UNRESOLVED`.
    - `label`: `name`, and `value` the byte address within the function, `UNRESOLVED` for a symbol outside.
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
    """`!` before a predicate, `~` before a register."""
    reuse: bool = False
    suffix: tuple[str, ...] = ()
    """What follows the register's dots, without `reuse`: `("64",)`, `("H0_H0",)`, `("X4",)`."""
    base: int = RZ
    ubase: int = URZ
    desc: int = URZ
    name: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """What the compiler tells the issue logic."""

    stall: int
    """Cycles before the next instruction of the warp may issue."""
    yield_: bool
    """The encoded bit. Cleared, the scheduler is asked to prefer another warp."""
    write_barrier: int
    """Dependency barrier released when the result is written, 7 for none."""
    read_barrier: int
    """Dependency barrier released when the operands are read, 7 for none."""
    wait_mask: int
    """Bit i set: wait for dependency barrier i before issue."""
    reuse: int
    """Bit i set: keep source operand i in the operand cache."""

    @staticmethod
    def of(encoding: int) -> Control:
        """The control codes of a 128-bit instruction word."""
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
    """One instruction. `text` is nvdisasm's, without the semicolon and its annotations."""

    address: int
    """Bytes from the start of the function's section."""
    opcode: str
    modifiers: tuple[str, ...]
    predicate: Operand | None
    operands: tuple[Operand, ...]
    control: Control
    encoding: int
    """128 bits, the first word printed is the lower half."""
    line: SourceLine | None
    """Innermost source line, where a function was inlined that of the function."""
    text: str
    targets: tuple[int, ...] = ()
    """Addresses an indexed branch may go to, as nvdisasm inferred them."""
    inlined_at: tuple[SourceLine, ...] = ()
    """Where `line` was inlined, from the inside out; known only where nvdisasm ran with `-gi`."""

    @cached_property
    def name(self) -> str:
        """Opcode with modifiers: `IMAD.WIDE.U32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class SassFunction:
    """One function: a kernel with whatever device functions lie in its section."""

    name: str
    """Mangled."""
    instructions: tuple[Instruction, ...]
    """In order; instruction i lies at address 16 i."""
    labels: Mapping[str, int]
    """Label or symbol -> byte address; one may lie at the end."""

    def at(self, address: int) -> Instruction:
        """The instruction at a byte address; `IndexError` where there is none."""
        if address % 16 or not 0 <= address < 16 * len(self.instructions):
            raise IndexError(f"{self.name}: no instruction at {address:#x}, the last lies at {self._last:#x}")
        return self.instructions[address // 16]

    @property
    def _last(self) -> int:
        return 16 * len(self.instructions) - 16
