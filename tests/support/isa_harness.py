"""One warp whose registers a test fills, on which single machine instructions are executed.

    rig = Rig()
    rig.r[2], rig.r[3] = values, others
    rig.run("IMAD.WIDE R4, R2, R3, RZ")
    assert np.array_equal(rig.r[4], expected)

`r`, `ur`, `p` and `up` are live views of the warp's memory; predicates are lane masks, see `mask` and `truths`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import gemmlab.emulator.isa  # noqa: F401  (fills the table of opcodes)
from gemmlab.emulator.decode import decode
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.instruction_layout import Event, Insn
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import FULL, LANES, Warp
from gemmlab.emulator.machine import EVENTS, launch_structure
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.emulator.resident import Resident
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.parse import parse

Words = npt.NDArray[np.uint32]
ALL = FULL
"""Every lane."""
M32, M64 = FULL, (1 << 64) - 1
EDGES = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFE,
    FULL,
)
REGISTERS = 255
BANK_BYTES = 4096
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)


def instruction(text: str, *, field: int = 0) -> Instruction:
    """One instruction from nvdisasm's text; `field`: bits 63:32 of its encoding, where float literals are kept.

    Labels are byte addresses: `` `(.L_20)`` lies at 0x20.
    """
    return program(text, field=field)[0]


def program(*lines: str, field: int = 0) -> tuple[Instruction, ...]:
    """Instructions from nvdisasm's text, at 0, 16, 32...; a line that ends in a colon is a label."""
    body: list[str] = []
    count = 0
    for line in lines:
        if line.endswith(":"):
            body.append(line)
            continue
        body.append(f"        /*{16 * count:04x}*/ {line} ; /* 0x{field << 32:016x} */")
        body.append("        /* 0x0000000000000000 */")
        count += 1
    return parse("\n".join([".text.k:", *body]))["k"].instructions


class Rig:
    """A warp in a block in a launch, with memory. Thread i of the warp has `threadIdx` as `threads` lays it out."""

    def __init__(
        self,
        *,
        shared_bytes: int = 0,
        shared_low: int = 0,
        local_bytes: int = 0,
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: tuple[int, int, int] = (LANES, 1, 1),
        block: int = 0,
        constants: Mapping[int, bytes] | None = None,
        check_races: bool = False,
    ) -> None:
        self.memory = MemoryMap()
        banks = {number: np.zeros(BANK_BYTES, np.uint8) for number in range(8)}
        for number, data in (constants or {}).items():
            banks[number][: len(data)] = np.frombuffer(data, np.uint8)
        geometry = Geometry(
            grid, threads, shared_low, shared_bytes, REGISTERS, local_bytes, banks, check_races=check_races
        )
        self._events = np.zeros((EVENTS, Event.SIZE // 8), np.int64)
        self._code = decode(_function(program("NOP")))
        self.reach = self.memory.reach()
        self.launch = launch_structure(self._code, self._code.records, self._events, geometry, self.reach)
        self.resident = Resident(geometry, self.launch.ctypes.data)
        self.resident.begin(block)
        self.warp = self.resident.warps[0]
        self.r: Words = self._words(Warp.REGISTERS, REGISTERS * LANES).reshape(REGISTERS, LANES)
        self.ur: Words = self._words(Warp.UNIFORM + 32, 63)
        self.p: Words = self._words(Warp.PREDICATES, 7)
        self.up: Words = self._words(Warp.UNIFORM_PREDICATES, 7)

    def _words(self, offset: int, count: int) -> Words:
        words: Words = self.warp[offset : offset + 4 * count].view(np.uint32)
        return words

    def run(self, text: str, *, field: int = 0, lanes: int = ALL) -> int:
        """Execute one instruction in `lanes`, less those whose guard fails; what its handler returned (`Status`)."""
        return self.execute(instruction(text, field=field), lanes=lanes)

    def execute(self, parsed: Instruction, *, lanes: int = ALL) -> int:
        """As `run`, for an instruction at hand."""
        self._code = decode(_function((parsed,)))
        self.launch[Launch.CODE : Launch.CODE + 8].view(np.int64)[0] = self._code.records.ctypes.data
        self._words(Warp.ACTIVE, 1)[0] = lanes
        guard = parsed.predicate
        if guard is not None:
            file = Warp.UNIFORM_PREDICATES if guard.kind == "upred" else Warp.PREDICATES
            lanes &= int(self._words(file, 8)[guard.index]) ^ (FULL if guard.invert else 0)
        record = self._code.records[0]
        handler = int(record[Insn.HANDLER : Insn.HANDLER + 8].view(np.int64)[0])
        return int(_HANDLER(handler)(self.warp.ctypes.data, record.ctypes.data, lanes)) if lanes else 0

    @property
    def events(self) -> npt.NDArray[np.int64]:
        """Events of the instructions so far, one row each (`instruction_layout.Event`)."""
        count = int(self.launch[Launch.EVENT_COUNT : Launch.EVENT_COUNT + 8].view(np.int64)[0])
        return self._events[:count]

    def pair(self, register: int) -> npt.NDArray[np.uint64]:
        """Two registers as 64 bits a lane."""
        whole: npt.NDArray[np.uint64] = self.r[register + 1].astype(np.uint64) << np.uint64(32) | self.r[register]
        return whole

    def set_pair(self, register: int, values: npt.ArrayLike) -> None:
        """Fill two registers from 64 bits a lane."""
        whole = np.asarray(values, np.uint64)
        self.r[register] = (whole & np.uint64(FULL)).astype(np.uint32)
        self.r[register + 1] = (whole >> np.uint64(32)).astype(np.uint32)


def _function(instructions: Sequence[Instruction]) -> SassFunction:
    return SassFunction("k", tuple(instructions), {"k": 0})


def mask(truths: npt.ArrayLike) -> int:
    """Truth values a lane as a lane mask."""
    return sum(1 << lane for lane, truth in enumerate(np.asarray(truths, bool)) if truth)


def truths(word: int | np.integer[npt.NBitBase]) -> npt.NDArray[np.bool_]:
    """A lane mask as truth values a lane."""
    return np.array([int(word) >> lane & 1 for lane in range(LANES)], bool)


def mixed(seed: int) -> Words:
    """A row of 32 words, edge values and random ones mixed."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 1 << 32, LANES, np.uint64).astype(np.uint32)
    edges = rng.choice(np.array(EDGES, np.uint32), LANES)
    return np.where(rng.integers(0, 2, LANES) == 1, row, edges).astype(np.uint32)


def signed(value: int, bits: int = 32) -> int:
    """The lowest bits as a number with a sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def each(function: Callable[..., int], *rows: npt.NDArray[Any]) -> Words:
    """`function` of Python integers, lane by lane, kept to 32 bits."""
    return np.array([function(*map(int, lane)) & FULL for lane in zip(*rows, strict=True)], np.uint32)


def rows(count: int, seeds: int = 8) -> list[list[Words]]:
    """`seeds` different fillings of `count` registers."""
    return [[mixed(97 * seed + number) for number in range(count)] for seed in range(seeds)]
