"""Bulk copies and reductions of contiguous bytes (UBLKCP) or by tensor map (UTMA*), their groups, and asynchronous
stores.
"""

from __future__ import annotations

from gemmlab.emulator.async_calls import Direction, Operation, reduction_of, request
from gemmlab.emulator.form import BASE, OFFSET, UNIFORM_BASE, Form
from gemmlab.emulator.form import join as join_words
from gemmlab.emulator.isa.access import width_of
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, ROW
from gemmlab.ir.types import I32
from gemmlab.sass.instruction import RZ

DIMENSIONS = ("1D", "2D", "3D", "4D", "5D")
HALF = 16
"""Number of low bits of a register that are a size, in units of 16 bytes; those above are a mask of blocks."""


def _registers(x: Form, count: int) -> list[Lanes]:
    """Take the next operand, such as `[UR4]`, as `count` consecutive uniform registers from that one on."""
    operand, record = x.take("mem")
    if operand.base != RZ or operand.value:
        raise x.refuse(f"operand {operand.text!r}")
    where = x.field(record, UNIFORM_BASE)
    return [Lanes(x.warp.load(where + 4 * part, I32)) for part in range(count)]


def _hint(x: Form) -> None:
    """Skip a cache policy, which has no effect here."""
    if x.left:
        operand = x.skip()
        if operand.kind != "mem" or x.left:
            raise x.refuse(f"operand {operand.text!r}")


@opcode("UBLKCP", "UBLKRED")
def ublkcp(x: Form) -> None:
    """Copy bytes, or reduce them into those at the destination; the size register counts units of 16 bytes."""
    route = x.modifiers[:2]
    ways = {
        ("S", "G"): Direction.GLOBAL_TO_SHARED, ("G", "S"): Direction.SHARED_TO_GLOBAL,
        ("S", "S"): Direction.SHARED_TO_SHARED,
    }  # fmt: skip
    if route not in ways:
        raise x.refuse()
    to, source = _registers(x, 2), _registers(x, 2)
    amount = x.source()
    _hint(x)
    to_address = join_words(*to) if route[0] == "G" else to[0]
    source_address = join_words(*source) if route[1] == "G" else source[0]
    blocks = amount >> HALF if x.has("MULTICAST") else Lanes(x.fn.constant(0, I32))
    size = (amount & 0xFFFF) << 4
    operands = (ways[route], to_address, source_address, to[1], size, blocks, reduction_of(x))
    x.status(request(x, Operation.BULK, *operands)[0])


@opcode("UBLKPF")
def ublkpf(x: Form) -> None:
    """Prefetch into the level-2 cache: only check the addresses."""
    source, amount = _registers(x, 2), x.source()
    _hint(x)
    operands = (Direction.PREFETCH, 0, join_words(*source), 0, (amount & 0xFFFF) << 4, 0, 0)
    x.status(request(x, Operation.BULK, *operands)[0])


@opcode("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF")
def utma(x: Form) -> None:
    """Copy, reduce or prefetch a box of a tensor.

    The first registers are the shared address (not for a prefetch), the mbarrier's address (only for a load), and the
    coordinates.
    """
    loads, prefetches = x.instruction.opcode == "UTMALDG", x.instruction.opcode == "UTMAPF"
    dimensions = x.one_of(*DIMENSIONS)
    reduction = reduction_of(x)
    known = {dimensions, "MULTICAST", "L2", *x.modifiers[1:] * (reduction > 0)}
    if not dimensions or set(x.modifiers) - known:
        raise x.refuse("im2col and gather modes are not emulated")
    count = DIMENSIONS.index(dimensions) + 1
    ahead = 2 if loads else 0 if prefetches else 1
    registers = _registers(x, ahead + count)
    tensor_map = join_words(*_registers(x, 2))
    zero = Lanes(x.fn.constant(0, I32))
    blocks = x.source() >> HALF if x.has("MULTICAST") else zero
    _hint(x)
    way = Direction.PREFETCH if prefetches else (Direction.GLOBAL_TO_SHARED if loads else Direction.SHARED_TO_GLOBAL)
    shared = registers[0] if ahead else zero
    mbarrier = registers[1] if loads else zero
    coordinates = (registers[ahead:] + [zero] * 5)[:5]
    operands: tuple[Lanes | int, ...] = (way, tensor_map, shared, mbarrier, blocks, reduction, count, *coordinates)
    x.status(request(x, Operation.TENSOR, *operands)[0])


@opcode("UTMACCTL")
def utmacctl(x: Form) -> None:
    """Prefetch (`PF`) or invalidate (`IV`) a cached tensor map. It has no effect: the emulator has no such cache."""
    x.allow("PF", "IV")
    x.skip()


@opcode("UTMACMDFLUSH")
def utmacmdflush(x: Form) -> None:
    """Close a bulk group."""
    x.status(request(x, Operation.COMMIT)[0])


@opcode("STAS", "REDAS")
def stas(x: Form) -> None:
    """Store (STAS) or reduce (REDAS) registers into shared memory of the cluster; complete the bytes at an mbarrier."""
    operand, record = x.take("mem")
    base, offset = x.field(record, BASE), Lanes(x.field(record, OFFSET)).trunc("i32").splat(LANES)
    to = Lanes(x.warp.load(base, I32, LANES)) + offset
    mbarrier = Lanes(x.warp.load(base + ROW, I32, LANES))
    if operand.suffix != ("64",):
        raise x.refuse(f"operand {operand.text!r}")
    width = width_of(x)
    words = x.words(width // 4)
    words += [x.constant(0)] * (4 - len(words))
    operands: tuple[Lanes | int, ...] = (to, mbarrier, width, reduction_of(x), *words)
    x.status(request(x, Operation.STORE, *operands)[0])


@opcode("UCGABAR_ARV", "UCGABAR_WAIT")
def ucgabar(x: Form) -> None:
    """Arrive at the cluster's barrier, or wait at it."""
    arrives = x.instruction.opcode == "UCGABAR_ARV"
    x.status(request(x, Operation.CLUSTER_ARRIVE if arrives else Operation.CLUSTER_WAIT)[0])
