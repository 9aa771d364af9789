"""Random functions: plain ones, ones that write to an array or give a structure, recursion with a bound, tables."""

from __future__ import annotations

from support.programs.statements import Lines, Statements
from support.programs.values import COMPUTED, STORED, STRUCTURES, U32, Array, Budget, Callee, Draw, Place, Scope, Type

_LIMIT = 150
"""Steps that a function takes at most."""
_DEPTH = 3
"""Nested calls of a recursive function, which calls itself twice at most; their frames fit a GPU's stack of 1 KiB."""


class Functions:
    """The functions of one program; what is made later may call what was made before."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.callees: list[Callee] = []
        self.lines: Lines = []
        self.count = 0

    def add(self) -> None:
        """One more function, or a family of them."""
        match self.draw.below(7):
            case 0:
                self.add_table()
            case 1 | 2:
                self.add_recursive()
            case 3:
                self._add(self._params(), self.draw.one(tuple(STRUCTURES)))
            case 4:
                array = self.draw.one(STORED), self.draw.one((2, 4, 8))
                self._add(self._params(), self.draw.one(COMPUTED), array)
            case _:
                self._add(self._params(), self.draw.one(COMPUTED))

    def add_table(self) -> None:
        """Functions of one signature, called by address."""
        count, params, result = self.draw.one((2, 4)), self._params(), self.draw.one(COMPUTED)
        made = [self._define(params, result) for _ in range(count)]
        self.count += 1
        name = f"t{self.count}"
        types = ", ".join(type_.name for type_ in params)
        self.lines.append(f"using F{name} = {result.name} (*)({types});")
        self.lines.append(f"TABLE F{name} {name}[{count}] = {{{', '.join(callee.name for callee in made)}}};")
        self.callees.append(Callee(name, params, result, max(callee.cost for callee in made), table=count))

    def add_recursive(self) -> None:
        """A function that calls itself, or two that call each other."""
        params, result = (U32, *self._params()[:3]), self.draw.one(COMPUTED)
        names = [self._name() for _ in range(1 + self.draw.below(2))]
        self.lines += [f"{self._head(name, params, result)};" for name in names]
        costs = [self._recursive(name, names[(i + 1) % len(names)], params, result) for i, name in enumerate(names)]
        self.callees.append(Callee(names[0], params, result, max(costs) * 2 ** (_DEPTH + 1), depth=_DEPTH))

    def _recursive(self, name: str, other: str, params: tuple[Type, ...], result: Type) -> int:
        """The function's own steps."""
        scope, budget = self._scope(params), Budget(_LIMIT // 8)
        scope.places[0] = Place("a0", U32, writable=False)
        scope.callees = [callee for callee in self.callees if callee.cost < _LIMIT // 16 and not callee.depth]
        made = Statements(self.draw, budget, result, f"{name}_")
        e = made.expressions(scope)
        lines = [f"if (a0 == 0) return {e.value(result, 2)};", *made.block(scope, 2, 1)]
        for i in range(1 + self.draw.below(2)):
            args = ", ".join(["a0 - 1", *(e.stored(type_, 2) for type_ in params[1:])])
            call = f"{result.name} again{i} = {other}({args});"
            scope.places.append(Place(f"again{i}", result))
            lines.append(call)
        lines += [*made.block(scope, 2, 1), f"return {e.value(result)};"]
        self.lines += [f"{self._head(name, params, result)} {{", *lines, "}"]
        return budget.spent + 4

    def _add(self, params: tuple[Type, ...], result: Type | str, array: tuple[Type, int] | None = None) -> None:
        self.callees.append(self._define(params, result, array))

    def _define(
        self, params: tuple[Type, ...], result: Type | str, array: tuple[Type, int] | None = None
    ) -> Callee:  # fmt: skip
        name, budget, scope = self._name(), Budget(_LIMIT), self._scope(params)
        if array:
            scope.arrays.append(Array("p", *array))
        made = Statements(self.draw, budget, result if isinstance(result, Type) else None, f"{name}_")
        body = []
        for _ in range(self.draw.below(4)):
            if budget.spend():
                body += made.statement(scope, 2, loop=False)
        e = made.expressions(scope)
        last = made.made_structure(scope, result) if isinstance(result, str) else e.value(result)
        inlined = array is not None and self.draw.chance(0.3)
        head = self._head(name, params, result, array)
        self.lines += [f"{head.replace('CALLED', 'DEVICE', inlined)} {{", *body, f"return {last};", "}"]
        return Callee(name, params, result, budget.spent + 2, array)

    def _head(
        self, name: str, params: tuple[Type, ...], result: Type | str, array: tuple[Type, int] | None = None
    ) -> str:
        listed = [f"{type_.name} a{i}" for i, type_ in enumerate(params)]
        listed += [f"{array[0].name}* p"] if array else []
        return f"CALLED {result if isinstance(result, str) else result.name} {name}({', '.join(listed)})"

    def _scope(self, params: tuple[Type, ...]) -> Scope:
        return Scope([Place(f"a{i}", type_) for i, type_ in enumerate(params)], [], [], [*self.callees])

    def _params(self) -> tuple[Type, ...]:
        return tuple(self.draw.one(STORED) for _ in range(1 + self.draw.below(5)))

    def _name(self) -> str:
        self.count += 1
        return f"f{self.count}"
