"""Kinds of instructions by purpose, with their colours in pictures of machine code."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gemmlab.core.trace import Steps
from gemmlab.plots.chart import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, YELLOW
from gemmlab.plots.pictures.drawing import Subject
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.loops import main_loop
from gemmlab.sass.metrics import flops
from gemmlab.sass.pipes import Pipe, pipe

GLOBAL, STORE, LOAD, MATH, BARRIER, ADDRESS, OTHER = (
    "global memory", "shared store", "shared load", "floating point", "barrier", "integer and moves", "other",
)  # fmt: skip
KINDS = {
    MATH: BLUE, LOAD: GREEN, STORE: ORANGE, GLOBAL: VERMILION, BARRIER: BLACK, ADDRESS: SKY, OTHER: "#bbbbbb",
}  # fmt: skip
WAITS = YELLOW
"""Colour of the marks for waiting."""
_OPCODES = {
    GLOBAL: "LDG LDGSTS STG LD ST TEX TLD ATOMG REDG RED UTMALDG UBLKCP",
    STORE: "STS STSM ATOMS",
    LOAD: "LDS LDSM",
    BARRIER: "BAR DEPBAR LDGDEPBAR SYNCS ARRIVES WARPSYNC",
}
_BY_OPCODE = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_FLOAT: tuple[Pipe, ...] = ("fma", "tensor", "fp16", "fp64")
_INTEGER: tuple[Pipe, ...] = ("alu", "fmaheavy", "uniform")


def kind_of(instruction: Instruction) -> str:
    """Return the kind of an instruction, a key of `KINDS`."""
    if named := _BY_OPCODE.get(instruction.opcode):
        return named
    where = pipe(instruction)
    # The compiler also moves constants and registers by adding zero on the FMA pipe, if the integer pipe is busy.
    if where in _FLOAT:
        return MATH if flops(instruction) else ADDRESS
    return ADDRESS if where in _INTEGER else OTHER


@dataclass(frozen=True, slots=True)
class LoopCode:
    """The main loop of a traced kernel."""

    header: int
    """Address of the loop's first instruction; -1 without a loop."""
    instructions: tuple[Instruction, ...]
    """Instructions that ran, in the order of the code, without NOPs and those of inner loops; empty without a loop."""


def executed_by(subject: Subject, warp: int) -> list[Instruction]:
    """Return the instructions that a warp of the first block executed, in order."""
    return instructions_of(subject.trace.trace.steps_of(warp), subject.function)


def instructions_of(steps: Steps, function: SassFunction) -> list[Instruction]:
    """Return the instruction of each step of a traced function."""
    numbers = steps.columns["instruction"].tolist()
    # Each instruction is looked up once only: it is executed many times, and making a step object is slow.
    first = {number: place for place, number in reversed(list(enumerate(numbers)))}
    known = {number: function.at(steps[place].site.address) for number, place in first.items()}
    return [known[number] for number in numbers]


_LOOPS: WeakKeyDictionary[Subject, LoopCode] = WeakKeyDictionary()


def loop_code(subject: Subject) -> LoopCode:
    """Return the main loop of a traced GPU kernel; the result is cached by subject."""
    if subject not in _LOOPS:
        _LOOPS[subject] = _found(subject)
    return _LOOPS[subject]


def _found(subject: Subject) -> LoopCode:
    executed = {site.address: site.executed for site in subject.trace.trace.observation.counters.sites}
    loop = main_loop(subject.function, executed)
    if loop is None:
        return LoopCode(-1, ())
    graph = flow_graph(subject.function)
    ran = (i for i in graph.instructions(*loop.own) if executed.get(i.address) and i.opcode != "NOP")
    return LoopCode(subject.function.instructions[graph.blocks[loop.header].start].address, tuple(ran))
