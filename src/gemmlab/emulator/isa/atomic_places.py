"""Code that checks the addresses of atomic operations, counts their traffic, and checks them for races."""

from __future__ import annotations

from gemmlab.emulator.address_space import COUNT, EACH_LANE, STORE, Place, translate
from gemmlab.emulator.cluster_races import ATOMIC, CLUSTER_RACE
from gemmlab.emulator.form import Form
from gemmlab.emulator.global_races import GLOBAL_RACE
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.isa.access import by_space
from gemmlab.emulator.isa.each_lane import locate, row
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, SHARED_WINDOW
from gemmlab.emulator.layout import LANES, Block
from gemmlab.ir.types import I32, I64, VOID
from gemmlab.ir.values import Value


def count_atomic(x: Form, where: Lanes, width: int, lanes: Value, *, twice: bool, joined: bool = False) -> None:
    """Emit code that counts a request, and sectors or wavefronts of `lanes`, and that checks for races.

    Sectors are those of a store. In shared memory each lane of a bank takes a wavefront; with `joined` those with the
    same word share one. With `twice` those of ATOMS count double: a compare-and-swap sends two values a lane.
    """
    x.insn.add(Insn.REQUESTS, 1)
    key = width + STORE
    in_shared = key if joined else key + EACH_LANE
    nothing = x.fn.scratch(I32, LANES)
    if x.instruction.opcode == "ATOMS":
        spots = row(x, where)
        fields = (Insn.WAVEFRONTS, Insn.IDEAL, Insn.CONFLICTS) if twice else ()
        before = [Lanes(x.insn.load(field, I64)) for field in fields]
        x.service("count_shared", VOID, COUNT, lanes, spots, in_shared)
        for field, old in zip(fields, before, strict=True):
            x.insn.add(field, (Lanes(x.insn.load(field, I64)) - old).value)
        _race_in_cluster(x, lanes, spots, nothing, key)
        return
    parts = [("global", lanes, where)]
    if x.instruction.opcode == "ATOM":
        parts = [(space, lanes.value, short) for space, lanes, short in by_space(x, where)]
    for space, some, short in parts:
        if space == "local":
            continue
        spots = row(x, short)
        x.service(f"count_{space}", VOID, COUNT, some, spots, in_shared if space == "shared" else key)
        if space == "shared":
            _race_in_cluster(x, some, spots, nothing, key)
        if space == "global":
            x.service("global_race", VOID, GLOBAL_RACE, some, spots, nothing, key, 1)


def _race_in_cluster(x: Form, lanes: Value, spots: Value, words: Value, key: int) -> None:
    with x.fn.when(x.block.load(Block.RACES, I64).differs(0)):
        x.service("cluster_race", VOID, CLUSTER_RACE, lanes, spots, words, key, ATOMIC)


def place_of(x: Form, address: Value, lane: Value, width: int, *, generic_float: bool) -> Place:
    """Return the checked place of one lane's address, in the opcode's space, or for ATOM in the address's space.

    For ATOM a local address is not inside, nor with `generic_float` a shared one; no event is recorded for these.
    """
    fn = x.fn
    if x.instruction.opcode != "ATOM":
        return checked_place(x, "shared" if x.instruction.opcode == "ATOMS" else "global", address, lane, width)
    host, valid, inside = fn.var(I64, 0), fn.var(I64, 0), fn.var(I32, 0)
    upper = Lanes(address) >> 32
    spaces = {"shared": upper.eq(SHARED_WINDOW), "global": upper.ne(SHARED_WINDOW) & upper.ne(LOCAL_WINDOW)}
    for space, chosen in spaces.items():
        if space == "shared" and generic_float:
            # The hardware adds floats in global memory only; compiled code has other instructions for other spaces.
            continue
        with fn.when(chosen.value):
            short = (Lanes(address) & 0xFFFFFFFF).value if space == "shared" else address
            place = checked_place(x, space, short, lane, width)
            host.set(place.host)
            valid.set(place.valid)
            inside.set(Lanes(place.inside).zext("i32").value)
    return Place(host.read(), valid.read(), inside.read().differs(0))


def checked_place(x: Form, space: str, address: Value, lane: Value, width: int) -> Place:
    fn = x.fn
    found = locate(x, space, lane, address, width + STORE)
    size = fn.constant(width, I64)
    place = translate(fn, x.warp, space, address, fn.constant(0, I64), size, lane)
    return Place(place.host, place.valid, found.differs(0))
