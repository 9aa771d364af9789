"""The base of a function under construction: its text, its values and their arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gemmlab.ir.types import I64, Type, pointer, vector
from gemmlab.ir.values import Operand, Value, Var, literal


class Emitter(ABC):
    """A function under construction, with the methods for instructions, constants, variables and integer arithmetic.

    Methods that return a `Value` emit the code, if any is needed, that computes it when the function runs.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[tuple[str, Type]],
        returns: Type,
        header: str,
        *,
        arm: bool,
        fused: bool,
    ) -> None:
        self.name = name
        self.arm = arm
        self.fused = fused
        self.returns = returns
        self.signature = tuple(type_ for _name, type_ in params)
        self.args = tuple(self.value(type_, f"%{label}") for label, type_ in params)
        self.declared: dict[str, str] = {}
        self._private: set[str] = set()
        self._header = header
        self._slots: list[str] = []
        self._body: list[str] = []
        self._count = 0

    @abstractmethod
    def value(self, type_: Type, name: str) -> Value:
        """Return the value of type `type_` whose text in the IR is `name`: a register, a constant or a symbol."""

    @abstractmethod
    def slot(self, type_: Type, name: str) -> Var:
        """Return the variable of type `type_` that lies in the stack slot `name`."""

    def line(self, text: str) -> None:
        """Append one instruction that has no result."""
        self._body.append("  " + text)

    def emit(self, type_: Type, text: str) -> Value:
        """Append one instruction under a new name, and return its result, of type `type_`."""
        self._count += 1
        name = f"%v{self._count}"
        self._body.append(f"  {name} = {text}")
        return self.value(type_, name)

    def _label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def open_block(self, label: str) -> None:
        """Begin the block named `label`."""
        self._body.append(f"{label}:")

    def text(self) -> str:
        """Return the whole function as LLVM IR."""
        return "\n".join([self._header + " {", "entry:", *self._slots, *self._body, "}"])

    def declare(self, name: str, text: str) -> None:
        """Record that this function calls the external function `name`; `text` is its declaration in LLVM IR."""
        self.declared[name] = text

    def constant(self, item: Operand, type_: Type) -> Value:
        """Return `item` as a value of `type_`: Python numbers become constants, scalars fill vectors.

        A value of any other type is a `TypeError`: nothing is converted.
        """
        if isinstance(item, Var):
            item = item.read()
        if isinstance(item, Value):
            if type_.lanes > 1 and item.type.name == type_.scalar.name:
                return self.splat(item, type_.lanes)
            if item.type.name != type_.name:
                raise TypeError(f"{self.name}: {item.type} where {type_} is needed")
            return item
        if type_.lanes > 1:
            each = f"{type_.scalar} {literal(item, type_.scalar)}"
            return self.value(type_, "<" + ", ".join([each] * type_.lanes) + ">")
        return self.value(type_, literal(item, type_))

    def splat(self, value: Value, lanes: int) -> Value:
        """Emit a vector with the scalar `value` in every lane, and return it; with one lane, return `value` itself."""
        type_ = vector(value.type, lanes)
        if lanes == 1:
            return value
        first = self.emit(type_, f"insertelement {type_} poison, {value.type} {value.name}, i64 0")
        return self.emit(type_, f"shufflevector {type_} {first.name}, {type_} poison, <{lanes} x i32> zeroinitializer")

    def index(self, item: Operand) -> Value:
        """Return `item`, a Python int or a 64-bit integer, as a 64-bit integer value."""
        return self.constant(item, I64)

    def binary(self, word: str, left: Value, right: Operand) -> Value:
        """Emit the LLVM instruction `word`, and return its result.

        If one operand is a vector, a scalar as the other one is put into all lanes.
        """
        other = right.read() if isinstance(right, Var) else right
        type_ = other.type if isinstance(other, Value) and other.type.lanes > left.type.lanes else left.type
        first, second = self.constant(left, type_), self.constant(other, type_)
        return self.emit(type_, f"{word} {type_} {first.name}, {second.name}")

    def var(self, type_: Type, initial: Operand | None = None) -> Var:
        """Return a new local variable; if `initial` is given, emit its assignment to the variable."""
        self._count += 1
        slot = f"%s{self._count}"
        self._slots.append(f"  {slot} = alloca {type_}")
        variable = self.slot(type_, slot)
        if initial is not None:
            variable.set(initial)
        return variable

    def scratch(self, element: Type, count: int, align: int = 64) -> Value:
        """Return the address of uninitialised stack memory for `count` elements, aligned to `align` bytes."""
        self._count += 1
        name = f"%s{self._count}"
        self._slots.append(f"  {name} = alloca [{count} x {element}], align {align}")
        self._private.add(name)
        return self.value(pointer(element), name)

    def select(self, condition: Value, yes: Operand, no: Operand, type_: Type = I64) -> Value:
        """Emit the choice of `yes` if the condition holds, else `no`, and return it; both are evaluated.

        Vectors are chosen from lane by lane. `type_` is the type of both.
        """
        first, second = self.constant(yes, type_), self.constant(no, type_)
        text = f"select {condition.type} {condition.name}, {type_} {first.name}, {type_} {second.name}"
        return self.emit(type_, text)

    def minimum(self, left: Operand, right: Operand) -> Value:
        """Emit the comparison of two signed 64-bit integers, and return the smaller one."""
        first, second = self.index(left), self.index(right)
        return self.select(first < second, first, second)

    def maximum(self, left: Operand, right: Operand) -> Value:
        """Emit the comparison of two signed 64-bit integers, and return the larger one."""
        first, second = self.index(left), self.index(right)
        return self.select(first > second, first, second)

    def ceil_div(self, value: Operand, divisor: Operand) -> Value:
        """Emit a division of 64-bit integers, `value` >= 0 and `divisor` > 0, and return the quotient, rounded up."""
        return (self.index(value) + (self.index(divisor) - 1)) // divisor

    def convert(self, value: Value, type_: Type) -> Value:
        """Emit the conversion of a number or vector to `type_`, of another width, and return the result.

        An integer is sign-extended or truncated; a float is widened or rounded to a narrower type. A value of `type_`
        is returned as it is.
        """
        if value.type.name == type_.name:
            return value
        wider, narrower = ("fpext", "fptrunc") if value.type.is_float else ("sext", "trunc")
        word = wider if type_.bits > value.type.bits else narrower
        return self.emit(type_, f"{word} {value.type} {value.name} to {type_}")

    def zero_extend(self, value: Value, type_: Type = I64) -> Value:
        """Emit the conversion of an unsigned integer or a truth value to a wider integer type, and return it."""
        return self.emit(type_, f"zext {value.type} {value.name} to {type_}")

    def address(self, value: Value) -> Value:
        """Return a pointer's address as a 64-bit integer."""
        return self.emit(I64, f"ptrtoint ptr {value.name} to i64")

    def cast(self, value: Value, element: Type) -> Value:
        """Return the address `value`, a pointer or a 64-bit integer, as a pointer to `element`."""
        if value.type.is_pointer:
            return self.value(pointer(element), value.name)
        return self.emit(pointer(element), f"inttoptr i64 {value.name} to ptr")
