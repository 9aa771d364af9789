"""What an instruction is there for, as pictures of machine code colour it."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gemmlab.plots.chart import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, YELLOW
from gemmlab.plots.pictures.drawing import Subject
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Instruction
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
"""Of marks for waiting."""
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
    """A key of `KINDS`."""
    if named := _BY_OPCODE.get(instruction.opcode):
        return named
    where = pipe(instruction)
    # A sum with zero is how constants and registers are moved where the other pipe is busy.
    if where in _FLOAT:
        return MATH if flops(instruction) else ADDRESS
    return ADDRESS if where in _INTEGER else OTHER


@dataclass(frozen=True, slots=True)
class LoopCode:
    """The main loop of a kernel that was traced."""

    header: int
    """The address at which a round begins; -1 without a loop."""
    instructions: tuple[Instruction, ...]
    """That ran, inner loops left out, in the order of the code; none where the kernel computes in no loop."""


def executed_by(subject: Subject, warp: int) -> list[Instruction]:
    """What a warp of the first block executed, in order."""
    steps, function = subject.trace.trace.steps_of(warp), subject.function
    numbers = steps.columns["instruction"].tolist()
    # Few instructions are executed many times; a step is slow to make.
    first = {number: place for place, number in reversed(list(enumerate(numbers)))}
    known = {number: function.at(steps[place].site.address) for number, place in first.items()}
    return [known[number] for number in numbers]


_KNOWN: WeakKeyDictionary[Subject, LoopCode] = WeakKeyDictionary()


def loop_code(subject: Subject) -> LoopCode:
    """The main loop of a GPU kernel."""
    if subject not in _KNOWN:
        _KNOWN[subject] = _found(subject)
    return _KNOWN[subject]


def _found(subject: Subject) -> LoopCode:
    executed = {site.address: site.executed for site in subject.trace.trace.observation.counters.sites}
    loop = main_loop(subject.function, executed)
    if loop is None:
        return LoopCode(-1, ())
    graph = flow_graph(subject.function)
    ran = (i for i in graph.instructions(*loop.own) if executed.get(i.address) and i.opcode != "NOP")
    return LoopCode(subject.function.instructions[graph.blocks[loop.header].start].address, tuple(ran))
