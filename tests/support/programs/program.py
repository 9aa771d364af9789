"""Random programs as text: a group of them is one translation unit, for the host and for a GPU alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from support.programs.functions import Functions
from support.programs.statements import Lines, Statements
from support.programs.values import F32, F64, I32, I64, U8, U32, U64, Array, Budget, Draw, Place, Scope

PRELUDE = Path(__file__).with_name("prelude.h")
THREADS, PHASES, WORDS, RESULTS = 64, 4, 8, 8
"""As in the prelude: threads of the one block, phases at most, words of input and 64-bit results a thread."""
_STATE = {"a": U32, "b": I32, "c": U64, "d": I64, "e": F32, "f": F64}
_LIMIT = 600
"""Steps that a thread takes at most in a phase."""
_SPECIAL = (0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x3F800000, 33)


@dataclass(frozen=True, slots=True)
class Group:
    """Programs compiled together; `names` are kernels `(u32* data, u64* results)` for one block of `THREADS`."""

    text: str
    names: tuple[str, ...]


def make_group(rng: np.random.Generator, count: int) -> Group:
    """`count` random programs."""
    names = tuple(f"program{i}" for i in range(count))
    parts = ["\n".join(_program(Draw(rng), name)) for name in names]
    return Group("\n".join([PRELUDE.read_text(), *parts]), names)


def make_data(rng: np.random.Generator) -> npt.NDArray[np.uint32]:
    """Input of a program, (`THREADS`, `WORDS`) of uint32: any bits, small numbers, edges, floats."""
    shape = (THREADS, WORDS)
    kinds = rng.integers(4, size=shape)
    floats = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 6, shape)).astype(np.float32).view(np.uint32)
    choices = (rng.integers(2**32, size=shape), rng.integers(100, size=shape), rng.choice(_SPECIAL, shape), floats)
    return np.choose(kinds, choices).astype(np.uint32)


def _program(draw: Draw, name: str) -> Lines:
    functions = Functions(draw)
    for _ in range(draw.below(4)):
        functions.add()
    count = 1 + draw.below(3)
    phases = [line for number in range(count) for line in _phase(draw, functions, number)]
    main: Lines = []
    for number in range(count):
        main.append(f"PHASE({name}_space::phase{number}, {number})")
        if draw.chance(0.4):
            main.append(_between(draw))
    return [f"namespace {name}_space {{", *functions.lines, *phases, "}", f"BEGIN({name})", *main, "END", ""]


def _phase(draw: Draw, functions: Functions, number: int) -> Lines:
    scope = Scope(callees=[*functions.callees])
    scope.places = [Place(f"s.{member}", type_) for member, type_ in _STATE.items()]
    scope.places.append(Place("tid", U32, writable=False))
    if number:
        posted = f"shared.posted[{number - 1}]"
        lanes = (
            f"tid ^ {1 + draw.below(THREADS - 1)}",
            f"(tid + {draw.below(THREADS)}) % {THREADS}",
            str(draw.below(THREADS)),
        )
        scope.places += [Place(f"{posted}[{lane}]", U32, writable=False) for lane in lanes]
        scope.places += [Place(f"shared.sums[{number - 1}][{i}]", U32, writable=False) for i in range(4)]
    scope.arrays = [Array("data", U32, WORDS), Array("shared.words[tid]", U32, 4), Array("shared.bytes[tid]", U8, 8)]
    scope.structures = []
    for i in range(2):
        scope.add_structure(f"shared.quads[tid][{i}]", "Quad")
    made = Statements(draw, Budget(_LIMIT))
    body: Lines = []
    for _ in range(1 + draw.below(5)):
        if made.budget.spend():
            body += made.statement(scope, 2, loop=False)
    if draw.chance(0.5):
        body += [f"if ({made.expressions(scope).condition(1)}) {_atomic(draw, made, scope, number)}"]
    for member in draw.rng.choice(tuple(_STATE), 3, replace=False):
        body.append(f"s.{member} = {made.expressions(scope).value(_STATE[member])};")
    return [f"DEVICE void phase{number}(u32 tid, State& s, Shared& shared, u32* data) {{", *body, "}"]


def _atomic(draw: Draw, made: Statements, scope: Scope, number: int) -> str:
    """Each sum has one operation, whose order does not matter."""
    which = draw.below(4)
    operation = ("add_to", "raise_to", "toggle", "lower_to")[which]
    return f"{operation}(shared.sums[{number}][{which}], {made.expressions(scope).value(U32, 2)});"


def _between(draw: Draw) -> str:
    if draw.chance(0.3):
        return f"VOTE(s.{draw.one('abcd')} & {1 << draw.below(31)})"
    return f"EXCHANGE({draw.one('abcdef')}, {draw.one(('xor', 'up', 'down'))}, {1 + draw.below(31)})"
