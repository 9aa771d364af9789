"""What random programs compute with: types, structures, variables, functions, and random choices among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the prelude's; `kind` is `u`, `i` or `f`."""

    kind: str
    bits: int

    @property
    def name(self) -> str:
        return f"{self.kind}{self.bits}"

    @property
    def unsigned(self) -> Type:
        return Type("u", self.bits)


I8, U8, I16, U16 = Type("i", 8), Type("u", 8), Type("i", 16), Type("u", 16)
I32, U32, I64, U64 = Type("i", 32), Type("u", 32), Type("i", 64), Type("u", 64)
F32, F64 = Type("f", 32), Type("f", 64)
COMPUTED = (I32, U32, I64, U64, F32, F64)
"""What expressions have; smaller ones are only stored."""
STORED = (*COMPUTED, I8, U8, I16, U16)
STRUCTURES = {
    "Quad": {"x": F32, "y": F32, "z": F32, "w": F32},
    "Pair": {"x": I32, "y": I32},
    "Wide": {"x": F64, "y": U64},
    "Mixed": {"a": F64, "b": I32, "c": I16, "d": U16, "e": U8, "f": I8},
    "Bits": {"a": U32, "b": I32, "c": U32, "d": U64},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A variable or member of one."""

    text: str
    type: Type
    writable: bool = True

    @property
    def value(self) -> str:
        """How it is read. Without the cast a bit field computes with fewer bits than its type in some compilers."""
        return f"({self.type.name}){self.text}"


@dataclass(frozen=True, slots=True)
class Array:
    """`size` is a power of two, so that a mask keeps an index within."""

    text: str
    type: Type
    size: int
    passed: bool = True
    """Whether a pointer to it can be an argument (of a volatile one it cannot)."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, or a table of functions of one signature. One with `array` writes to it, so that it stands alone."""

    name: str
    params: tuple[Type, ...]
    result: Type | str
    """A structure by its name."""
    cost: int
    array: tuple[Type, int] | None = None
    table: int = 0
    depth: int = 0
    """Most nested calls of itself; its first argument says how many."""


@dataclass(slots=True)
class Scope:
    """What can be named at a place of a program."""

    places: list[Place] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    structures: list[tuple[str, str]] = field(default_factory=list)
    """Variables that are a whole structure: name, type."""
    callees: list[Callee] = field(default_factory=list)

    def inner(self) -> Scope:
        return replace(
            self, places=[*self.places], arrays=[*self.arrays], structures=[*self.structures], callees=[*self.callees]
        )

    def add_structure(self, name: str, kind: str) -> None:
        self.structures.append((name, kind))
        self.places.extend(Place(f"{name}.{member}", type_) for member, type_ in STRUCTURES[kind].items())


class Budget:
    """How many steps a function or phase takes at most, loops and calls multiplied out."""

    def __init__(self, limit: int) -> None:
        self.limit, self.spent, self.times = limit, 0, 1

    def spend(self, cost: int = 1) -> bool:
        """Whether that much is left; then it is gone."""
        fits = self.spent + cost * self.times <= self.limit
        self.spent += cost * self.times * fits
        return fits

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        self.times *= times
        yield
        self.times //= times


class Draw:
    """Random choices."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]
