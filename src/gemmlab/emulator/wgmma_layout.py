"""Byte offsets of a warp's warpgroup multiplications in flight, and numbers for their types."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.layout import ROW

WARPGROUP_SHIFT = 2
WARPGROUP = 1 << WARPGROUP_SHIFT
"""Number of warps of a warpgroup; its warp w computes rows 16 w to 16 w + 15 of the accumulator."""
MULTIPLYING_WARPS = 24
"""Most warps of a block whose warpgroups have a column of their own in vector clocks and in the rows of reads: column
31 - g belongs to the multiplications of warpgroup g, and its clock counts them. Only a wait for a multiplication makes
its clock known, not a barrier behind the issue. In larger blocks the reads count as those of the multiplying warp.
"""
ROWS = 16
"""Rows of the accumulator that one warp computes."""
MOST_COLUMNS = 256
OPERAND_BYTES = 32
"""Bytes in k of a row of A, and of a column of B, for every type."""


@dataclass(frozen=True, slots=True)
class Format:
    """The type of an input: its number `code`, and the bits of an element, of its exponent, and of its mantissa.

    An integer has an exponent and a mantissa of 0 bits.
    """

    code: int
    bits: int
    exponent: int = 0
    mantissa: int = 0
    signed: bool = True


FORMATS = {
    "F16": Format(0, 16, 5, 10), "BF16": Format(1, 16, 8, 7), "TF32": Format(2, 32, 8, 10), "E4M3": Format(3, 8, 4, 3),
    "E5M2": Format(4, 8, 5, 2), "S8": Format(5, 8), "U8": Format(6, 8, signed=False),
}  # fmt: skip
"""Types of inputs by nvdisasm's names. TF32 is the upper 19 bits of its word."""
SUMS = {"F32": 0, "F16": 1, "S32": 2}
"""Types of accumulators by nvdisasm's names -> number of each."""


class Shape:
    """Bit positions and flags of the word that describes a multiplication's form."""

    A, B, SUM = 0, 4, 8
    """Bit positions of the 4-bit numbers of A's, B's and the accumulator's type."""
    COLUMNS = 12
    """Bit position of the 12-bit number of columns."""
    NEGATE_A, NEGATE_B, TRANSPOSE_A, TRANSPOSE_B, REGISTERS, SATURATE = (1 << bit for bit in range(24, 30))
    """`TRANSPOSE_`: the operand is contiguous along m or n, not along k. `REGISTERS`: A is in registers."""


OPERANDS = {1 << 9: "A", 2 << 9: "B"}
"""Bits in the `extra` of a multiplication's event -> name of the operand."""


class Flight:
    """Byte offsets of one warp's multiplications in flight: a header, one entry for each, then space for the operands
    and the sums of the one that is executed.
    """

    COUNT = 0
    """i64: entries in use."""
    GROUP = 8
    """i64: groups closed so far; an entry belongs to the group that was open at its issue."""
    ISSUED = 24
    """i64: multiplications issued so far. The warps of a warpgroup issue the same ones."""
    LANDED = 32
    """i32: the warp's own clock at the issue of the last multiplication that was executed."""
    RANDOM = 16
    """i64: state of the random generator that chooses when multiplications execute; 0: always at the latest moment."""
    FENCES = 64
    """Ring of `FENCE_TURNS` rows: the warp's own clock at each of a lane's last proxy fences."""
    FENCE_TURNS = 8
    ENDS = FENCES + FENCE_TURNS * ROW
    """Ring of `END_TURNS` i64. Each has, for one of the last groups, the number of multiplications issued up to its
    end.
    """
    END_TURNS = 16
    FENCED = ENDS + 8 * END_TURNS
    """A row of 32 i32: the warp's vector clock at its last proxy fence by all of its lanes."""
    ENTRY = FENCED + ROW
    ENTRY_INSN, ENTRY_A, ENTRY_B, ENTRY_GROUP, ENTRY_SHAPE = 0, 8, 16, 24, 32
    """i64: instruction record, descriptors, number of the group, `Shape`."""
    ENTRY_SOURCE, ENTRY_TARGET, ENTRY_REGISTERS = 40, 48, 56
    """i64: offsets in the warp of the accumulator to read (0: it is zero), of the accumulator to write, and of A."""
    ENTRY_NUMBER = 64
    """i64: number of the multiplication among all that the warp issued, from 0."""
    ENTRY_KNOWN = 128
    """A row of 32 i32: the warp's vector clock at the issue."""
    ENTRY_SIZE = ENTRY_KNOWN + ROW
    CAPACITY = 128
    BYTES_A = ENTRY + CAPACITY * ENTRY_SIZE
    """Bytes of A, from shared memory or registers, then those of B; after them factors (f32, or i32 for integers) and
    exponents (i32)."""
    BYTES_B = BYTES_A + ROWS * OPERAND_BYTES
    FACTORS_A = BYTES_B + MOST_COLUMNS * OPERAND_BYTES
    """Space for 16 rows of up to 32 factors of 4 bytes each, one for each k."""
    EXPONENTS_A = FACTORS_A + ROWS * OPERAND_BYTES * 4
    FACTORS_B = EXPONENTS_A + ROWS * OPERAND_BYTES * 4
    """Space for up to 32 rows of factors, one for each k; a row has as many as there are columns."""
    EXPONENTS_B = FACTORS_B + MOST_COLUMNS * OPERAND_BYTES * 4
    SUMS = EXPONENTS_B + MOST_COLUMNS * OPERAND_BYTES * 4
    """16 rows of sums, f32 or i32; a row has as many as there are columns."""
    SIZE = SUMS + ROWS * MOST_COLUMNS * 4
