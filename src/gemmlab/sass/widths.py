"""The number of registers that each operand of an instruction occupies, exact for opcodes of the catalog's kernels."""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.sass.instruction import RZ, Instruction, Operand
from gemmlab.sass.metrics import matrix_shape

_WITH_ADDRESS = frozenset({
    "LD", "LDG", "LDS", "LDL", "LDC", "LDGSTS", "ST", "STG", "STS", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG",
})  # fmt: skip
_FAR = frozenset({"LD", "LDG", "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "LDGSTS"})
"""Opcodes that access global memory, whose addresses can have 64 bits."""
VECTORS = {"F32x2": 2, "F32x4": 4, "F16x4": 2, "F16x8": 4, "BF16x4": 2, "BF16x8": 4}
"""Type of an atomic operation on a vector -> number of 32-bit registers of the vector."""
_WIDE_SIZES = {"128": 4, "64": 2, "F64": 2, "U64": 2, "S64": 2, **VECTORS}
_PAIRS = frozenset({"RET", "CALL", "BRX", "JMX"})
"""Opcodes that read a code address of 64 bits."""
_TEXTURES = frozenset({"TEX", "TLD", "TLD4"})
"""Opcodes whose first two register operands are results, each a pair of registers."""
_BITS = {"TF32": 32, "U8": 8, "S8": 8, "U4": 4, "S4": 4, "F64": 64}
"""Modifier of a matrix instruction -> bits of an element of A or B. `_tensor` has those without such a modifier."""


def registers_of(instruction: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """Return (read, written): the numbers of the vector registers that an instruction accesses, without RZ.

    A predicated instruction accesses them only if its predicate holds. For opcodes that no kernel of the catalog
    contains, registers may be missing.
    """
    reads: set[int] = set()
    writes: set[int] = set()
    for operand, width, written in _widths(instruction):
        first = operand.index if operand.kind == "reg" else operand.base
        if first != RZ:
            (writes if written else reads).update(range(first, min(RZ, first + width)))
    return frozenset(reads), frozenset(writes)


def _widths(instruction: Instruction) -> Iterator[tuple[Operand, int, bool]]:
    """Yield (operand that names vector registers, number of registers, true if they are written)."""
    named = [o for o in instruction.operands if o.kind in ("reg", "mem", "const")]
    results = _writes_first(instruction)
    place = 0
    for operand in named:
        if operand.kind != "reg":
            yield operand, _address(instruction, operand), False
            continue
        written = (results and place == 0 and operand is _first(instruction)) or (
            instruction.opcode in _TEXTURES and place == 1
        )
        yield operand, _width(instruction, place, written=written), written
        place += 1


def _first(instruction: Instruction) -> Operand | None:
    """Return the first operand that is not a predicate."""
    return next((o for o in instruction.operands if o.kind not in ("pred", "upred")), None)


def _writes_first(instruction: Instruction) -> bool:
    """Return whether the first operand that is not a predicate is a vector register, and a result.

    In stores, reductions, branches and comparisons it is a source.
    """
    opcode = instruction.opcode
    if opcode.startswith(("ST", "RED", "BAR", "BRX", "R2UR", "R2P")) and opcode != "REDUX":
        return False
    if opcode in _PAIRS or opcode.startswith(("BAR", "WARPSYNC", "NANOSLEEP")):
        return False
    first = _first(instruction)
    # A comparison's results are its leading predicates.
    compares = "SETP" in opcode or opcode in ("PLOP3", "VOTE") or (opcode == "FCHK")
    return first is not None and first.kind == "reg" and not compares


def _address(instruction: Instruction, operand: Operand) -> int:
    if operand.kind == "const" or instruction.opcode not in _FAR or "U32" in operand.suffix:
        return 1
    # The second address of LDGSTS is the global one; shared addresses state no width.
    return 2 if "64" in operand.suffix or operand is _global(instruction) else 1


def _global(instruction: Instruction) -> Operand | None:
    """Return the operand with a 64-bit global address whose text does not say so, as in `LDG.E R0, [R2]` before sm_80.

    `None` if there is none.
    """
    addresses = [o for o in instruction.operands if o.kind == "mem"]
    return addresses[-1] if addresses and "E" in instruction.modifiers and not addresses[-1].suffix else None


def _width(instruction: Instruction, place: int, *, written: bool) -> int:
    """Return the number of registers of a register operand; `place` is its index among the register operands."""
    opcode, names = instruction.opcode, instruction.modifiers
    if opcode in _WITH_ADDRESS:
        return next((_WIDE_SIZES[name] for name in names if name in _WIDE_SIZES), 1)
    if opcode in ("IMAD", "UIMAD") and ("WIDE" in names or "HI" in names):
        wide = (0, 3) if "WIDE" in names else (3,)
        return 2 if _position(instruction, place) in wide else 1
    if opcode in ("HMMA", "IMMA", "DMMA"):
        return _tensor(instruction, place)
    if opcode == "HGMMA":
        _, n, _ = matrix_shape(instruction)
        sums = {o.index for o in instruction.operands[:1]}
        own = [o for o in instruction.operands if o.kind == "reg"][place].index in sums
        return n // (2 if "F32" in names else 4) if own else 4
    if opcode in _TEXTURES:
        return 2 if written else 1
    if opcode == "LDSM":
        return next((int(name) for name in names if name in ("2", "4")), 1)
    if opcode in ("F2F", "I2F", "F2I", "FRND"):
        # The modifiers name the type of the result, then that of the source.
        types = [name for name in names if name[0] in "FUSB" and name[1:].isdigit()]
        chosen = types[:1] if written else types[1:] or (types if opcode == "FRND" else [])
        return 2 if any(name.endswith("64") for name in chosen) else 1
    if opcode == "CS2R":
        return 1 if "32" in names else 2
    if opcode == "MATCH":
        return 2 if "U64" in names and not written else 1
    return 2 if opcode in _PAIRS or (opcode.startswith("D") and opcode[1:] in ("ADD", "MUL", "FMA", "SETP")) else 1


def _position(instruction: Instruction, place: int) -> int:
    """Return the position, among all operands that are not predicates, of the vector register operand `place`.

    `place` is its index among the vector register operands.
    """
    operands = [o for o in instruction.operands if o.kind not in ("pred", "upred")]
    registers = [at for at, operand in enumerate(operands) if operand.kind == "reg"]
    return registers[place]


def _tensor(instruction: Instruction, place: int) -> int:
    """Return the number of 32-bit registers per lane that contain D, A, B or C of a warp's matrix multiplication.

    The 32 lanes share a matrix evenly. `place` is the index among the vector register operands.
    """
    m, n, k = matrix_shape(instruction)
    default = {"IMMA": 8, "DMMA": 64}.get(instruction.opcode, 16)
    bits = next((_BITS[name] for name in instruction.modifiers if name in _BITS), default)
    of_sum = {"IMMA": 32, "DMMA": 64}.get(instruction.opcode, 32 if "F32" in instruction.modifiers else 16)
    words = (m * n * of_sum, m * k * bits, k * n * bits, m * n * of_sum)[min(3, _position(instruction, place))]
    return max(1, words // 1024)
