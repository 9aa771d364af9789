"""Random statements: declarations, assignments, branches, bounded loops, switches, calls."""

from __future__ import annotations

from support.programs.expressions import Expressions
from support.programs.values import COMPUTED, STORED, STRUCTURES, U32, Array, Budget, Callee, Draw, Place, Scope, Type

Lines = list[str]
_TURNS = 7
"""Most turns of a loop."""


class Statements:
    """The body of one function or phase. `result` is the type of what an early `return` gives, if there may be one."""

    def __init__(self, draw: Draw, budget: Budget, result: Type | None = None, prefix: str = "v") -> None:
        self.draw, self.budget, self.result, self.prefix = draw, budget, result, prefix
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"{self.prefix}{self.names}"

    def expressions(self, scope: Scope) -> Expressions:
        return Expressions(self.draw, scope, self.budget)

    def block(self, scope: Scope, count: int, depth: int, *, loop: bool = False) -> Lines:
        """`count` statements in a scope of their own, with `depth` more levels within; `loop`: `break` is allowed."""
        inner = scope.inner()
        found: Lines = []
        for _ in range(count):
            if self.budget.spend():
                found += self.statement(inner, depth, loop=loop)
        return found

    def statement(self, scope: Scope, depth: int, *, loop: bool) -> Lines:
        """One statement; what it declares is added to `scope`."""
        e = self.expressions(scope)
        match self.draw.below(15 if depth > 0 else 9):
            case 0:
                return self.declare(scope)
            case 1:
                return self.declare_array(scope)
            case 2:
                return self.declare_structure(scope)
            case 3:
                return self.call(scope) or self.assign(scope)
            case 4 if loop and self.draw.chance(0.5):
                return [f"if ({e.condition(1)}) {self.draw.one(('break', 'continue'))};"]
            case 4 if self.result and self.draw.chance(0.3):
                return [f"if ({e.condition(1)}) return {e.value(self.result, 2)};"]
            case 9 | 10:
                lines = [f"if ({e.condition()}) {{", *self.block(scope, 1 + self.draw.below(2), depth - 1, loop=loop)]
                if self.draw.chance(0.5):
                    lines += ["} else {", *self.block(scope, 1 + self.draw.below(2), depth - 1, loop=loop)]
                return [*lines, "}"]
            case 11 | 12:
                return self.loop(scope, depth)
            case 13:
                return self.switch(scope, depth)
            case 14:
                return ["{", *self.block(scope, 1 + self.draw.below(2), depth - 1, loop=loop), "}"]
        return self.assign(scope)

    def declare(self, scope: Scope) -> Lines:
        type_, name = self.draw.one(STORED), self.name()
        qualifier = "volatile " if self.draw.chance(0.1) else ""
        value = self.expressions(scope).stored(type_)
        scope.places.append(Place(name, type_))
        return [f"{qualifier}{type_.name} {name} = {value};"]

    def declare_array(self, scope: Scope) -> Lines:
        """An array, all of it written at once: from a list, or by a loop that is unrolled or not."""
        type_, name, size = self.draw.one(STORED), self.name(), self.draw.one((2, 4, 8, 16))
        qualifier = "volatile " if self.draw.chance(0.15) else ""
        e = self.expressions(scope)
        if size <= 4 and self.draw.chance(0.6):
            values = ", ".join(e.stored(type_, 1) for _ in range(size))
            lines = [f"{qualifier}{type_.name} {name}[{size}] = {{{values}}};"]
        else:
            counter = self.name()
            within = scope.inner()
            within.places.append(Place(counter, U32, writable=False))
            value = self.expressions(within).stored(type_, 2)
            lines = [
                f"{qualifier}{type_.name} {name}[{size}];",
                f"for (u32 {counter} = 0; {counter} < {size}; ++{counter}) {name}[{counter}] = {value};",
            ]
        scope.arrays.append(Array(name, type_, size, passed=not qualifier))
        return lines

    def declare_structure(self, scope: Scope) -> Lines:
        """A structure, by its members or as a copy, or an array of two of which one is chosen."""
        name = self.name()
        alike = self.draw.one(scope.structures) if scope.structures and self.draw.chance(0.3) else None
        if alike is not None:
            kind, text = alike[1], alike[0]
        else:
            kind = self.draw.one(tuple(STRUCTURES))
            text = self.made_structure(scope, kind)
        if self.draw.chance(0.2):
            index = self.expressions(scope).index(2)
            lines = [
                f"{kind} {name}s[2] = {{{text}, {self.made_structure(scope, kind)}}};",
                f"{kind}& {name} = {name}s[{index}];",
            ]
        else:
            lines = [f"{kind} {name} = {text};"]
        scope.add_structure(name, kind)
        return lines

    def made_structure(self, scope: Scope, kind: str) -> str:
        e = self.expressions(scope)
        members = ", ".join(e.stored(type_, 1) for type_ in STRUCTURES[kind].values())
        return f"made_bits({members})" if kind == "Bits" else f"{kind}{{{members}}}"

    def assign(self, scope: Scope) -> Lines:
        """To a variable, a member, an element of an array or a whole structure."""
        e = self.expressions(scope)
        pairs = [(a, b) for a, kind in scope.structures for b, other in scope.structures if kind == other and a != b]
        if pairs and self.draw.chance(0.1):
            a, b = self.draw.one(pairs)
            return [f"{a} = {b};"]
        places = [place for place in scope.places if place.writable]
        if scope.arrays and (not places or self.draw.chance(0.35)):
            array = self.draw.one(scope.arrays)
            target, type_ = e.element(array), array.type
        elif places:
            place = self.draw.one(places)
            target, type_ = place.text, place.type
        else:
            return self.declare(scope)
        # `x op= y` of a signed type might overflow.
        if type_.kind != "i" and type_ in COMPUTED and self.draw.chance(0.4):
            operators = ("+", "-", "*") if type_.kind == "f" else ("+", "-", "*", "^", "|", "&")
            return [f"{target} {self.draw.one(operators)}= {e.value(type_, 2)};"]
        return [f"{target} = {e.stored(type_)};"]

    def call(self, scope: Scope) -> Lines:
        """A call that stands alone, whose function may write to an array or give a structure; none: no lines."""
        e = self.expressions(scope)
        fitting = [c for c in scope.callees if c.array is None or self._arrays(scope, c)]
        callee = self.draw.one(fitting) if fitting else None
        if callee is None or not self.budget.spend(callee.cost):
            return []
        array = self.draw.one(self._arrays(scope, callee)).text if callee.array else ""
        text, name = e.called(callee, 2, array), self.name()
        if isinstance(callee.result, str):
            scope.add_structure(name, callee.result)
            return [f"{callee.result} {name} = {text};"]
        scope.places.append(Place(name, callee.result))
        return [f"{callee.result.name} {name} = {text};"]

    @staticmethod
    def _arrays(scope: Scope, callee: Callee) -> list[Array]:
        assert callee.array
        kind, size = callee.array
        return [array for array in scope.arrays if array.passed and array.type == kind and array.size >= size]

    def loop(self, scope: Scope, depth: int) -> Lines:
        """At most `_TURNS` turns, of a number that is known or not."""
        counter = self.name()
        e = self.expressions(scope)
        within = scope.inner()
        within.places.append(Place(counter, U32, writable=False))
        with self.budget.repeated(_TURNS):
            body = self.block(within, 1 + self.draw.below(3), depth - 1, loop=True)
        turns = str(1 + self.draw.below(_TURNS)) if self.draw.chance(0.5) else f"({e.value(U32, 2)} & {_TURNS})"
        unroll = [f"#pragma unroll {self.draw.one((1, 2, 4))}"] if self.draw.chance(0.2) else []
        match self.draw.below(4):
            case 0:
                # As many turns as the highest bit is high; the compiler cannot tell.
                head = f"for (u32 {counter} = {e.value(U32, 2)} & {2**_TURNS - 1}; {counter} != 0; {counter} >>= 1) {{"
                return [*unroll, head, *body, "}"]
            case 1:
                count = self.name()
                lines = [f"u32 {counter} = 0; const u32 {count} = {turns};", "do {", *body]
                return ["{", *lines, f"}} while (++{counter} < {count});", "}"]
            case 2:
                limit = self.name()
                lines = [f"u32 {counter} = 0; const u32 {limit} = {turns};", f"while ({counter}++ < {limit}) {{"]
                return ["{", *lines, *body, "}", "}"]
        count = self.name()
        head = f"for (u32 {counter} = 0, {count} = {turns}; {counter} < {count}; ++{counter}) {{"
        return [*unroll, head, *body, "}"]

    def switch(self, scope: Scope, depth: int) -> Lines:
        """Cases in a row, which become a table of jumps, or far apart; some fall through."""
        count = 2 + self.draw.below(4)
        dense = self.draw.chance(0.7)
        labels = list(range(count)) if dense else sorted({self.draw.below(2**31) for _ in range(count)})
        value = self.expressions(scope).value(U32, 2)
        lines = [f"switch ({value}{f' % {count + 1}u' if dense else ''}) {{"]
        for label in labels:
            lines += [f"case {label}u: {{", *self.block(scope, 1 + self.draw.below(2), depth - 1), "}"]
            lines += ["break;"] * self.draw.chance(0.8)
        return [*lines, "default: {", *self.block(scope, 1, depth - 1), "}", "}"]
