"""Values of a function under construction: Python expressions over them emit LLVM instructions."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol, Self, TypeAlias, Union

from gemmlab.ir.types import F64, I1, Type, vector

Operand: TypeAlias = Union["Value", "Var", int, float]

_COMPARE = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_FLOAT_COMPARE = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}


class Builder(Protocol):
    """The methods of a function that the operators on its values call."""

    def value(self, type_: Type, name: str) -> Value: ...

    def constant(self, item: Operand, type_: Type) -> Value: ...

    def binary(self, word: str, left: Value, right: Operand) -> Value: ...

    def emit(self, type_: Type, text: str) -> Value: ...

    def line(self, text: str) -> None: ...

    def offset(self, base: Value, index: Operand) -> Value: ...

    def load(self, address: Value, lanes: int = 1, mask: Value | None = None) -> Value: ...

    def store(self, address: Value, item: Operand, mask: Value | None = None) -> None: ...

    def call_external(self, name: str, returns: Type, signature: Sequence[Type], *args: Operand) -> Value: ...

    def declare(self, name: str, text: str) -> None: ...

    def select(self, condition: Value, yes: Operand, no: Operand, type_: Type = ...) -> Value: ...

    def splat(self, value: Value, lanes: int) -> Value: ...

    def shuffle(self, left: Value, right: Value, pattern: Sequence[int]) -> Value: ...


def literal(value: float, type_: Type) -> str:
    """Return the text of a constant in LLVM IR; a float or double is written as its bits, so that it is rounded once.

    Raises `TypeError` for an integer type and a fraction, and for a pointer other than 0.
    """
    if type_.is_float:
        rounded = value if type_.scalar == F64 else struct.unpack("f", struct.pack("f", value))[0]
        bits = struct.unpack("<Q", struct.pack("<d", rounded))[0]
        return f"0x{bits:016X}"
    if type_.is_pointer:
        if value != 0:
            raise TypeError(f"the only constant pointer is 0, not {value!r}")
        return "null"
    if value != int(value):
        raise TypeError(f"{value!r} is not a constant of type {type_}")
    return str(int(value))


class Arithmetic:
    """Operators of values and variables. Integers are signed, except that `>>` shifts in zeros."""

    __slots__ = ()

    def read(self) -> Value:
        """Return the current value; for a variable, emit a load of it first."""
        raise NotImplementedError

    def __add__(self, other: Operand) -> Value:
        value = self.read()
        if value.type.is_pointer:
            return value.fn.offset(value, other)
        return value.fn.binary("fadd" if value.type.is_float else "add nsw", value, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("fsub" if value.type.is_float else "sub nsw", value, other)

    def __rsub__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.constant(other, value.type) - value

    def __mul__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("fmul" if value.type.is_float else "mul nsw", value, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> Value:
        """Emit the division of integers; the quotient is truncated, so it is Python's for non-negative ones only."""
        value = self.read()
        return value.fn.binary("sdiv", value, other)

    def __mod__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("srem", value, other)

    def __and__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("and", value, other)

    def __or__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("or", value, other)

    def __lshift__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("shl", value, other)

    def __rshift__(self, other: Operand) -> Value:
        value = self.read()
        return value.fn.binary("lshr", value, other)

    def __lt__(self, other: Operand) -> Value:
        return self._compare("<", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("<=", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare(">=", other)

    def equals(self, other: Operand) -> Value:
        """Emit a comparison, and return whether the values are equal. Python's `==` on them tests identity instead."""
        return self._compare("==", other)

    def differs(self, other: Operand) -> Value:
        """Emit a comparison, and return whether the values differ; NaN differs from everything."""
        return self._compare("!=", other)

    def _compare(self, sign: str, other: Operand) -> Value:
        value = self.read()
        fn = value.fn
        right = fn.constant(other, value.type)
        word = f"fcmp {_FLOAT_COMPARE[sign]}" if value.type.is_float else f"icmp {_COMPARE[sign]}"
        type_ = vector(I1, value.type.lanes)
        return fn.emit(type_, f"{word} {value.type} {value.name}, {right.name}")

    def __getitem__(self, index: Operand) -> Value:
        value = self.read()
        return value.fn.load(value + index)

    def __setitem__(self, index: Operand, item: Operand) -> None:
        value = self.read()
        value.fn.store(value + index, item)

    def __bool__(self) -> bool:
        raise TypeError("a kernel value has no truth value while the kernel is being built; use fn.when(...)")


class Value(Arithmetic):
    """A value that does not change, or a constant: `name` is its text in the IR."""

    __slots__ = ("fn", "name", "type")

    def __init__(self, fn: Builder, type_: Type, name: str) -> None:
        self.fn = fn
        self.type = type_
        self.name = name

    def read(self) -> Value:
        return self


class Var(Arithmetic):
    """A local variable: a stack slot, which LLVM turns into a register."""

    __slots__ = ("fn", "slot", "type")

    def __init__(self, fn: Builder, type_: Type, slot: str) -> None:
        self.fn = fn
        self.type = type_
        self.slot = slot

    def read(self) -> Value:
        return self.fn.emit(self.type, f"load {self.type}, ptr {self.slot}")

    def set(self, item: Operand) -> None:
        """Emit the assignment of `item`: a value of the variable's type, a number, or a scalar that fills a vector."""
        value = self.fn.constant(item, self.type)
        self.fn.line(f"store {self.type} {value.name}, ptr {self.slot}")

    def __iadd__(self, other: Operand) -> Self:  # type: ignore[override]
        self.set(self + other)
        return self
