"""Arithmetic on the values of all lanes of a warp, or on one value in uniform instructions, emitted as LLVM IR.

Integers are bit patterns: `+`, `-` and `*` wrap, and each comparison is either signed or unsigned. Shifts by the width
or more are poison, except with `shl`, `lshr` and `ashr`, which clamp as the hardware does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, Union

from gemmlab.ir.types import F16, F32, F64, I1, I8, I16, I32, I64, Type, vector
from gemmlab.ir.values import Builder, Value

Item: TypeAlias = Union["Lanes", int, float]

TYPES = {"i1": I1, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "f16": F16, "f32": F32, "f64": F64} | {
    name: Type(name) for name in ("i128", "i256")
}
_NAMES = {type_.name: name for name, type_ in TYPES.items()}


class Lanes:
    """A value in every lane (or a single one if `lanes` is 1). `kind`: `"i1"` .. `"i256"`,
    `"f16"`, `"f32"`, `"f64"`.
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def fn(self) -> Builder:
        return self.value.fn

    @property
    def lanes(self) -> int:
        return self.value.type.lanes

    @property
    def kind(self) -> str:
        return _NAMES[self.value.type.scalar.name]

    def like(self, item: Item) -> Lanes:
        """Return `item`: a number becomes a constant of this type. Raises `TypeError` for a value of another kind."""
        if isinstance(item, Lanes):
            if item.kind != self.kind:
                raise TypeError(f"{item.kind} where {self.kind} is needed")
            return item
        return Lanes(self.fn.constant(item, self.value.type))

    def _type(self, kind: str) -> Type:
        return vector(TYPES[kind], self.lanes)

    def _binary(self, word: str, other: Item) -> Lanes:
        return Lanes(self.fn.binary(word, self.value, self.like(other).value))

    def _arithmetic(self, word: str, other: Item) -> Lanes:
        return self._binary(("f" if self.kind[0] == "f" else "") + word, other)

    def __add__(self, other: Item) -> Lanes:
        return self._arithmetic("add", other)

    def __sub__(self, other: Item) -> Lanes:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Item) -> Lanes:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Item) -> Lanes:
        return self._binary("fdiv", other)

    def __and__(self, other: Item) -> Lanes:
        return self._binary("and", other)

    def __or__(self, other: Item) -> Lanes:
        return self._binary("or", other)

    def __xor__(self, other: Item) -> Lanes:
        return self._binary("xor", other)

    def __invert__(self) -> Lanes:
        return self._binary("xor", -1 if self.kind != "i1" else 1)

    def __neg__(self) -> Lanes:
        if self.kind[0] == "f":
            return Lanes(self.fn.emit(self.value.type, f"fneg {self.value.type} {self.value.name}"))
        return self.like(0) - self

    def __lshift__(self, bits: Item) -> Lanes:
        return self._binary("shl", bits)

    def __rshift__(self, bits: Item) -> Lanes:
        """Shift right, filling with zeros; poison for a shift by the width or more."""
        return self._binary("lshr", bits)

    def arithmetic_shift(self, bits: Item) -> Lanes:
        return self._binary("ashr", bits)

    @property
    def width(self) -> int:
        return self.value.type.bits

    def shl(self, bits: Item) -> Lanes:
        """Shift left by any unsigned amount; 0 for the width or more."""
        return self._clamped("shl", bits)

    def lshr(self, bits: Item) -> Lanes:
        """Logical shift right by any unsigned amount; 0 for the width or more."""
        return self._clamped("lshr", bits)

    def ashr(self, bits: Item) -> Lanes:
        """Arithmetic shift right by any unsigned amount; only the sign remains for the width or more."""
        amount = self.like(bits).umin(self.width - 1)
        return self._binary("ashr", amount)

    def _clamped(self, word: str, bits: Item) -> Lanes:
        amount = self.like(bits)
        shifted = self._binary(word, amount & (self.width - 1))
        return amount.ult(self.width).select(shifted, 0)

    def _compare(self, word: str, other: Item) -> Lanes:
        right = self.like(other).value
        text = f"{word} {self.value.type} {self.value.name}, {right.name}"
        return Lanes(self.fn.emit(self._type("i1"), text))

    def eq(self, other: Item) -> Lanes:
        """Compare for equality; false for floats if one is NaN."""
        return self._compare("fcmp oeq" if self.kind[0] == "f" else "icmp eq", other)

    def ne(self, other: Item) -> Lanes:
        """Compare for inequality; true for floats if one is NaN."""
        return self._compare("fcmp une" if self.kind[0] == "f" else "icmp ne", other)

    def ult(self, other: Item) -> Lanes:
        return self._compare("icmp ult", other)

    def ule(self, other: Item) -> Lanes:
        return self._compare("icmp ule", other)

    def ugt(self, other: Item) -> Lanes:
        return self._compare("icmp ugt", other)

    def uge(self, other: Item) -> Lanes:
        return self._compare("icmp uge", other)

    def lt(self, other: Item) -> Lanes:
        """Compare for less than: signed for integers; false for floats if one is NaN."""
        return self._compare("fcmp olt" if self.kind[0] == "f" else "icmp slt", other)

    def le(self, other: Item) -> Lanes:
        return self._compare("fcmp ole" if self.kind[0] == "f" else "icmp sle", other)

    def gt(self, other: Item) -> Lanes:
        return self._compare("fcmp ogt" if self.kind[0] == "f" else "icmp sgt", other)

    def ge(self, other: Item) -> Lanes:
        return self._compare("fcmp oge" if self.kind[0] == "f" else "icmp sge", other)

    def is_nan(self) -> Lanes:
        return self._compare("fcmp uno", self)

    def select(self, yes: Item, no: Item) -> Lanes:
        """Return `yes` in the lanes where this truth value holds, else `no`; at least one of the two is a `Lanes`."""
        model = yes if isinstance(yes, Lanes) else no
        if not isinstance(model, Lanes):
            raise TypeError("select needs a value to take its type from")
        return Lanes(self.fn.select(self.value, model.like(yes).value, model.like(no).value, model.value.type))

    def umin(self, other: Item) -> Lanes:
        right = self.like(other)
        return self.ult(right).select(self, right)

    def umax(self, other: Item) -> Lanes:
        right = self.like(other)
        return self.ugt(right).select(self, right)

    def smin(self, other: Item) -> Lanes:
        right = self.like(other)
        return self.lt(right).select(self, right)

    def smax(self, other: Item) -> Lanes:
        right = self.like(other)
        return self.gt(right).select(self, right)

    def bits(self, kind: str) -> Lanes:
        """Return the same bits as a value of another kind of the same width."""
        return self if kind == self.kind else self._convert("bitcast", kind)

    def _convert(self, word: str, kind: str) -> Lanes:
        type_ = self._type(kind)
        return Lanes(self.fn.emit(type_, f"{word} {self.value.type} {self.value.name} to {type_}"))

    def zext(self, kind: str) -> Lanes:
        return self if kind == self.kind else self._convert("zext", kind)

    def sext(self, kind: str) -> Lanes:
        return self if kind == self.kind else self._convert("sext", kind)

    def trunc(self, kind: str) -> Lanes:
        return self if kind == self.kind else self._convert("trunc", kind)

    def to_float(self, kind: str, *, signed: bool) -> Lanes:
        """Convert an integer to floating point, rounded to nearest even."""
        return self._convert("sitofp" if signed else "uitofp", kind)

    def to_int(self, kind: str, *, signed: bool) -> Lanes:
        """Convert floating point to an integer, rounded towards zero; poison out of range."""
        return self._convert("fptosi" if signed else "fptoui", kind)

    def widen(self, kind: str) -> Lanes:
        """Convert exactly to a wider floating point type."""
        return self if kind == self.kind else self._convert("fpext", kind)

    def narrow(self, kind: str) -> Lanes:
        """Convert to a narrower floating point type, rounded to nearest even."""
        return self if kind == self.kind else self._convert("fptrunc", kind)

    def call(self, name: str, *others: Item, result: str | None = None) -> Lanes:
        """Emit a call of the LLVM intrinsic `name` (such as `"fma"` or `"ctpop"`) on this and other values of its type.

        `result` is the kind of the result, if it is not this value's.
        """
        values = [self.value, *(self.like(other).value for other in others)]
        return self._call(f"llvm.{name}.{self._suffix()}", values, self._type(result or self.kind))

    def call_flag(self, name: str, flag: bool) -> Lanes:
        """Emit a call of an LLVM intrinsic that takes a flag besides this value.

        If the flag is true, the result is poison for one value: for 0 with `ctlz` and `cttz`, for the least integer
        with `abs`.
        """
        symbol, type_ = f"llvm.{name}.{self._suffix()}", self.value.type
        self.fn.declare(symbol, f"declare {type_} @{symbol}({type_}, i1)")
        text = f"call {type_} @{symbol}({type_} {self.value.name}, i1 {str(flag).lower()})"
        return Lanes(self.fn.emit(type_, text))

    def _suffix(self) -> str:
        return self.kind if self.lanes == 1 else f"v{self.lanes}{self.kind}"

    def _call(self, symbol: str, values: Sequence[Value], type_: Type) -> Lanes:
        signature = ", ".join(str(value.type) for value in values)
        self.fn.declare(symbol, f"declare {type_} @{symbol}({signature})")
        listing = ", ".join(f"{value.type} {value.name}" for value in values)
        return Lanes(self.fn.emit(type_, f"call {type_} @{symbol}({listing})"))

    def fma(self, other: Item, addend: Item) -> Lanes:
        """Return `self * other + addend`, rounded once."""
        return self.call("fma", other, addend)

    def splat(self, lanes: int) -> Lanes:
        """Emit code that repeats a scalar in `lanes` lanes. A value that already has `lanes` lanes is returned
        unchanged.
        """
        return self if self.lanes == lanes else Lanes(self.fn.splat(self.value, lanes))

    def lane(self, index: int) -> Lanes:
        """Return the value of lane `index` as a scalar; a scalar is returned as it is."""
        if self.lanes == 1:
            return self
        text = f"extractelement {self.value.type} {self.value.name}, i64 {index}"
        return Lanes(self.fn.emit(self.value.type.scalar, text))

    def shuffle(self, pattern: Sequence[int]) -> Lanes:
        """Return a value whose lane `i` is lane `pattern[i]` of this one."""
        return Lanes(self.fn.shuffle(self.value, self.value, pattern))

    def map(self, function: Callable[[Lanes], Lanes]) -> Lanes:
        """Apply `function` to each lane as a scalar, for operations without a vector form."""
        parts = [function(self.lane(index)) for index in range(self.lanes)]
        return parts[0] if self.lanes == 1 else gather(parts)

    def mask_bits(self) -> Lanes:
        """Return the truth values of all lanes as one i32 (bit i: lane i); for one lane, 0 or all ones."""
        if self.lanes == 1:
            return Lanes(self.fn.emit(I32, f"sext i1 {self.value.name} to i32"))
        return Lanes(self.fn.emit(I32, f"bitcast {self.value.type} {self.value.name} to i32"))


def gather(parts: Sequence[Lanes]) -> Lanes:
    """Return a vector with as many lanes as there are scalars in `parts`: lane `i` is `parts[i]`."""
    fn, scalar = parts[0].fn, parts[0].value.type
    type_ = vector(scalar, len(parts))
    whole = fn.value(type_, "poison")
    for index, part in enumerate(parts):
        whole = fn.emit(type_, f"insertelement {type_} {whole.name}, {scalar} {part.value.name}, i64 {index}")
    return Lanes(whole)


def lane_mask(word: Value, lanes: int = 32) -> Lanes:
    """Return the bits of an i32 as a truth value in each lane; with one lane, true if any bit is set."""
    fn = word.fn
    if lanes == 1:
        return Lanes(fn.emit(I1, f"icmp ne i32 {word.name}, 0"))
    return Lanes(fn.emit(vector(I1, lanes), f"bitcast i32 {word.name} to <{lanes} x i1>"))
