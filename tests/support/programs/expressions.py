"""Random expressions without side effects, undefined behaviour or bits of a NaN."""

from __future__ import annotations

from support.programs.values import (
    COMPUTED,
    F32,
    F64,
    I32,
    I64,
    STORED,
    U32,
    U64,
    Array,
    Budget,
    Callee,
    Draw,
    Scope,
    Type,
)

_EDGES = (0, 1, 2, 3, 7, 31, 32, 33, 255, 0x7F, 0x80, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63, 2**64 - 1)
_FLOAT_EDGES = (
    0x00000000, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x007FFFFF, 0x00800000,
    0x7F7FFFFF, 0x4B000000, 0x4F000000, 0xCF000000,
)  # fmt: skip
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")


class Expressions:
    """Expressions over what is in scope."""

    def __init__(self, draw: Draw, scope: Scope, budget: Budget) -> None:
        self.draw, self.scope, self.budget = draw, scope, budget

    def value(self, type_: Type, depth: int = 3) -> str:
        """An expression of one of `COMPUTED`."""
        if depth <= 0 or self.draw.chance(0.12):
            return self.leaf(type_)
        general = self.draw.below(12)
        if general == 0:
            return f"({self.condition(depth - 1)} ? {self.value(type_, depth - 1)} : {self.value(type_, depth - 1)})"
        if general == 1:
            return self.converted(type_, depth)
        if general == 2 and (call := self.call(type_, depth)):
            return call
        return self._float(type_, depth) if type_.kind == "f" else self._integer(type_, depth)

    def stored(self, type_: Type, depth: int = 3) -> str:
        """An expression of any of `STORED`."""
        return f"({type_.name}){self.value(type_ if type_ in COMPUTED else I32, depth)}"

    def condition(self, depth: int = 2) -> str:
        """An expression of type bool."""
        match self.draw.below(8) if depth > 0 else 7:
            case 0:
                return f"({self.condition(depth - 1)} && {self.condition(depth - 1)})"
            case 1:
                return f"({self.condition(depth - 1)} || {self.condition(depth - 1)})"
            case 2:
                return f"!{self.condition(depth - 1)}"
            case 3:
                return f"((({self.value(U32, depth - 1)} >> ({self.leaf(U32)} & 31)) & 1) != 0)"
            case _:
                type_ = self.draw.one(COMPUTED)
                return f"({self.value(type_, depth)} {self.draw.one(_COMPARED)} {self.value(type_, depth - 1)})"

    def index(self, size: int, depth: int = 1) -> str:
        """An index of an array; often a constant."""
        if size == 1 or self.draw.chance(0.4):
            return str(self.draw.below(size))
        return f"{self.value(U32, depth)} & {size - 1}"

    def element(self, array: Array, depth: int = 1) -> str:
        return f"{array.text}[{self.index(array.size, depth)}]"

    def call(self, type_: Type, depth: int) -> str:
        """A call of a function that changes nothing; empty where there is none or it would take too long."""
        fitting = [c for c in self.scope.callees if isinstance(c.result, Type) and not c.array]
        if not fitting:
            return ""
        callee = self.draw.one(fitting)
        if not self.budget.spend(callee.cost):
            return ""
        text = self.called(callee, depth - 1)
        assert isinstance(callee.result, Type)
        return text if callee.result == type_ else self.cast(type_, callee.result, text)

    def called(self, callee: Callee, depth: int, array: str = "") -> str:
        """The call itself; `array` is the argument for a function that writes to one."""
        args = [self.stored(type_, depth) for type_ in callee.params]
        if callee.depth:
            args[0] = f"{args[0]} % {callee.depth + 1}u"
        name = f"{callee.name}[{self.index(callee.table)}]" if callee.table else callee.name
        return f"{name}({', '.join([*args, array] if array else args)})"

    def leaf(self, type_: Type) -> str:
        """A constant, a variable or an element of an array."""
        if self.draw.chance(0.25):
            return self.literal(type_)
        same = [place for place in self.scope.places if place.type == type_]
        if same and self.draw.chance(0.6):
            return self.draw.one(same).value
        if self.scope.arrays and self.draw.chance(0.5):
            array = self.draw.one(self.scope.arrays)
            index = self.index(array.size, 0)
            return self.cast(type_, array.type, f"{array.text}[{index}]")
        if self.scope.places:
            place = self.draw.one(self.scope.places)
            return self.cast(type_, place.type, place.value)
        return self.literal(type_)

    def literal(self, type_: Type) -> str:
        if type_.kind == "f":
            if self.draw.chance(0.5):
                text = repr(round(float(self.draw.rng.normal()) * 10.0 ** self.draw.below(6), 4))
                return f"({text}f)" if type_ == F32 else f"({text})"
            bits = self.draw.one(_FLOAT_EDGES)
            return f"as_f32({bits:#x}u)" if type_ == F32 else f"(f64)as_f32({bits:#x}u)"
        number = self.draw.one(_EDGES) if self.draw.chance(0.6) else self.draw.below(2**62) >> self.draw.below(60)
        number &= 2**type_.bits - 1
        return f"({type_.name}){number:#x}{'ull' if type_.bits == 64 else 'u'}"

    def cast(self, to: Type, of: Type, text: str) -> str:
        """`text` of type `of` as type `to`."""
        if to == of:
            return text
        if of.kind == "f" and to.kind != "f":
            return f"to_{to.name}({text})" if to.bits >= 32 else f"({to.name})to_i32({text})"
        if to.kind == "f" and of.kind != "f":
            return f"to_{to.name}({text})"
        return f"({to.name})({text})"

    def converted(self, type_: Type, depth: int) -> str:
        """From another type, perhaps by way of a smaller one, or from the bits of a float or a truth."""
        match self.draw.below(4):
            case 0 if type_.kind != "f":
                return f"({type_.name})seen({self.value(self.draw.one((F32, F64)), depth - 1)})"
            case 0:
                bits = U32 if type_ == F32 else U64
                return f"as_{type_.name}({self.value(bits, depth - 1)})"
            case 1 if type_.kind != "f":
                narrow = self.draw.one(STORED[6:])
                return f"({type_.name})({narrow.name})({self.value(self.draw.one((I32, U64)), depth - 1)})"
            case 2:
                made = f"(i32){self.condition(depth - 1)}"
                return self.cast(type_, I32, made)
        of = self.draw.one([other for other in COMPUTED if other != type_])
        return self.cast(type_, of, self.value(of, depth - 1))

    def _integer(self, type_: Type, depth: int) -> str:
        name, wide = type_.name, type_.unsigned.name
        a, b = self.value(type_, depth - 1), self.value(type_, depth - 2)
        choice = self.draw.below(16)
        if choice < 7:
            return f"({name})(({wide}){a} {'+-*&|^+'[choice]} ({wide}){b})"
        count = f"({self.value(U32, depth - 2)} & {type_.bits - 1})"
        match choice:
            case 7:
                return f"({name})(({wide}){a} << {count})"
            case 8:
                return f"({name})({a} >> {count})"
            case 9:
                return f"{self.draw.one(('quotient', 'remainder_of'))}<{name}>({a}, {b})"
            case 10:
                return f"{self.draw.one(('smaller', 'larger'))}<{name}>({a}, {b})"
            case 11:
                return f"({name})~{a}" if type_.kind == "u" else f"magnitude<{name}>({a})"
            case 12:
                return f"upper(({name}){a}, ({name}){b})"
            case 13:
                return f"({name}){self.draw.one(('ones', 'zeros', 'lowest', 'mirrored'))}(({wide}){a})"
            case 14:
                return f"({name})(0 - ({wide}){a})"
        return self._special(type_, depth)

    def _special(self, type_: Type, depth: int) -> str:
        """What a GPU has an instruction for."""
        a, b, c = (self.value(U32, depth - 1) for _ in range(3))
        name = self.draw.one(("funnel_left", "funnel_right", "picked", "distance", "dot_bytes"))
        if name == "dot_bytes" and type_ in {I32, I64}:
            c = f"(i32){c}"
        return f"({type_.name}){name}({a}, {b}, {c})"

    def _float(self, type_: Type, depth: int) -> str:
        a, b = self.value(type_, depth - 1), self.value(type_, depth - 2)
        match self.draw.below(12):
            case 0 | 1 | 2 | 3 | 4 | 5 as choice:
                return f"({a} {'+-*+-*'[choice]} {b})"
            case 6:
                return f"({a} / {b})"
            case 7 | 8:
                return f"fused({a}, {b}, {self.value(type_, depth - 2)})"
            case 9:
                return f"{self.draw.one(('root', 'down', 'up', 'cut', 'even', 'magnitude'))}({a})"
            case 10:
                return f"{self.draw.one(('smaller', 'larger'))}<{type_.name}>({a}, {b})"
        return f"(-{a})"
