"""A function under construction: control flow as `with` blocks, and calls, on top of values, memory and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from gemmlab.ir.types import I8, I64, VOID, Type, pointer
from gemmlab.ir.values import Operand, Value, Var
from gemmlab.ir.vectors import Vectors


class Watcher(Protocol):
    """An emitter of code before a function's accesses to memory and around its calls."""

    def access(self, fn: Function, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        """Emit code into `fn` before it loads or stores (`write`) a value of `type_` at `address`.

        It is called for every load and store of floating-point type but those of the function's own stack. Only the
        lanes that are set in `mask` are accessed; all if it is None.
        """

    def around(self, fn: Function, callee: Function) -> AbstractContextManager[None]:
        """Return a context in which `fn` emits one call of `callee`, a function of the same module."""


class Function(Vectors):
    """A function of LLVM IR whose body is being emitted. `Module.function` makes it."""

    def __init__(
        self, name: str, params: Sequence[tuple[str, Type]], returns: Type, header: str, *, arm: bool, fused: bool,
        watcher: Watcher | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, params, returns, header, arm=arm, fused=fused)
        self._watcher = watcher

    def value(self, type_: Type, name: str) -> Value:
        return Value(self, type_, name)

    def slot(self, type_: Type, name: str) -> Var:
        return Var(self, type_, name)

    def watch(self, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        if self._watcher is not None and type_.is_float:
            self._watcher.access(self, address, type_, mask, write=write)

    def _branch(self, condition: Value, yes: str, no: str) -> None:
        self.line(f"br i1 {condition.name}, label %{yes}, label %{no}")

    @contextmanager
    def range(self, start: Operand, stop: Operand | None = None, step: Operand = 1) -> Iterator[Value]:
        """Emit the loop `for i in range(start, stop, step)`, step > 0, and yield `i`; the `with` block emits its body.

        `range(stop)` starts at 0.
        """
        first, last = (0, start) if stop is None else (start, stop)
        limit, stride = self.index(last), self.index(step)
        counter = self.var(I64, first)
        head, body, tail, done = (self._label(hint) for hint in ("head", "body", "next", "done"))
        self._branch(counter < limit, body, done)
        self.open_block(body)
        here = counter.read()
        yield here
        self.line(f"br label %{tail}")
        self.open_block(tail)
        following = here + stride
        counter.set(following)
        self.line(f"br label %{head}")
        self.open_block(head)
        self._branch(following < limit, body, done)
        self.open_block(done)

    @contextmanager
    def loop(self) -> Iterator[str]:
        """Emit an endless loop, whose body the `with` block emits. `leave_if(label, condition)` with the yielded label
        leaves it.
        """
        body, done = self._label("body"), self._label("done")
        self.line(f"br label %{body}")
        self.open_block(body)
        yield done
        self.line(f"br label %{body}")
        self.open_block(done)

    def leave_if(self, label: str, condition: Value) -> None:
        """Emit an exit, if the condition holds, from the loop that yielded `label`."""
        stay = self._label("stay")
        self._branch(condition, label, stay)
        self.open_block(stay)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Emit a branch: the code that the `with` block emits runs only if the condition holds."""
        body, done = self._label("then"), self._label("done")
        self._branch(condition, body, done)
        self.open_block(body)
        yield
        self.line(f"br label %{done}")
        self.open_block(done)

    @contextmanager
    def choose(self, condition: Value) -> Iterator[Choice]:
        """Emit a choice between two arms, both of which the `with` block must emit.

        `with fn.choose(condition) as choice:`, and in it `with choice.yes(): ...` and `with choice.no(): ...`.
        """
        choice = Choice(self, self._label("yes"), self._label("no"), self._label("done"))
        self._branch(condition, choice.yes_label, choice.no_label)
        yield choice
        self.open_block(choice.done_label)

    def ret(self, item: Operand | None = None) -> None:
        """Emit a return of `item`, or of nothing, inside a `when`, `choose` or loop; code after it there never runs."""
        self.finish(item)
        self.open_block(self._label("dead"))

    def finish(self, item: Operand | None = None) -> None:
        """Emit the return of `item`, or of nothing, that ends the function's text."""
        if item is None:
            self.line("ret void")
        else:
            self.line(f"ret {self.returns} {self.constant(item, self.returns).name}")

    def function_address(self, callee: Function) -> Value:
        """Return a pointer to a function of the module."""
        return self.value(pointer(I8), f"@{callee.name}")

    def call(self, callee: Function, *args: Operand) -> Value:
        """Emit a call of a function of the same module and return its result."""
        with nullcontext() if self._watcher is None else self._watcher.around(self, callee):
            return self._call(f"@{callee.name}", callee.returns, callee.signature, args)

    def call_external(self, name: str, returns: Type, signature: Sequence[Type], *args: Operand) -> Value:
        """Emit a call of the C function `name`, and return its result.

        The function's address is looked up when the code is loaded.
        """
        self.declare(name, f"declare {returns} @{name}({', '.join(map(str, signature))})")
        return self._call(f"@{name}", returns, signature, args)

    def call_pointer(self, target: Value, returns: Type, signature: Sequence[Type], *args: Operand) -> Value:
        """Emit a call through a function pointer and return its result."""
        return self._call(target.name, returns, signature, args)

    def _call(self, target: str, returns: Type, signature: Sequence[Type], args: Sequence[Operand]) -> Value:
        if len(args) != len(signature):
            raise TypeError(f"{self.name}: {target} takes {len(signature)} arguments, got {len(args)}")
        passed = [self.constant(arg, type_) for arg, type_ in zip(args, signature, strict=True)]
        listing = ", ".join(f"{type_} {value.name}" for type_, value in zip(signature, passed, strict=True))
        if returns == VOID:
            self.line(f"call void {target}({listing})")
            return self.value(VOID, "")
        return self.emit(returns, f"call {returns} {target}({listing})")


class Choice:
    """The two arms of `Function.choose`."""

    def __init__(self, fn: Function, yes_label: str, no_label: str, done_label: str) -> None:
        self._fn = fn
        self.yes_label = yes_label
        self.no_label = no_label
        self.done_label = done_label

    @contextmanager
    def yes(self) -> Iterator[None]:
        """Emit the first arm: the code that the `with` block emits runs if the condition holds."""
        yield from self._arm(self.yes_label)

    @contextmanager
    def no(self) -> Iterator[None]:
        """Emit the second arm: the code that the `with` block emits runs if the condition does not hold."""
        yield from self._arm(self.no_label)

    def _arm(self, label: str) -> Iterator[None]:
        self._fn.open_block(label)
        yield
        self._fn.line(f"br label %{self.done_label}")
