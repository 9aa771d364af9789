"""A compilation unit of CPU code: its functions as one text of LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from gemmlab.ir.function import Function, Watcher
from gemmlab.ir.target import Target
from gemmlab.ir.types import VOID, Type


class Probe(Watcher, Protocol):
    """An emitter of code that observes a running kernel.

    The code's memory is `words` 64-bit words, 0 at first, at the symbol that `ir.probe.STATE` names.
    """

    @property
    def name(self) -> str:
        """Name of the probe in targets and cache keys; it contains no colon."""

    @property
    def words(self) -> int: ...

    def prepare(self, module: Module) -> None:
        """Emit the functions that the probe needs. They come first in the module and are not probed themselves."""


class Module:
    """Functions that are compiled together for one target; a `probe`, if there is one, observes their accesses and
    calls.
    """

    def __init__(self, target: Target, probe: Probe | None = None) -> None:
        self.target = target
        self.lanes = target.lanes
        self._functions: dict[str, Function] = {}
        self._globals: list[str] = []
        self._probe: Probe | None = None
        if probe is not None:
            probe.prepare(self)
            self._probe = probe

    @contextmanager
    def function(
        self,
        name: str,
        params: Sequence[tuple[str, Type]],
        returns: Type = VOID,
        *,
        exported: bool = False,
        inline: bool = False,
        noalias: Sequence[str] = (),
    ) -> Iterator[Function]:
        """Define a function, whose body is emitted in the `with` block; its last instruction must be `finish`.

        `exported` makes its name visible outside of the object code, `inline` copies it into all callers, and without
        both it is never inlined. `noalias` names pointers among the parameters whose memory is accessed through no
        other pointer while the function runs.
        """
        listing = ", ".join(f"{type_}{' noalias' if label in noalias else ''} %{label}" for label, type_ in params)
        linkage = "" if exported else "internal "
        attributes = "alwaysinline nounwind" if inline else ("nounwind" if exported else "noinline nounwind")
        header = f"define {linkage}{returns} @{name}({listing}) {attributes}"
        fn = Function(name, params, returns, header, arm=self.target.arm, fused=self.target.fused, watcher=self._probe)
        self._functions[name] = fn
        yield fn

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def table(self, name: str, functions: Sequence[Function]) -> str:
        """Define a constant table of function pointers; return its symbol, which `Function.table_entry` takes."""
        entries = ", ".join(f"ptr @{fn.name}" for fn in functions)
        self._globals.append(f"@{name} = internal constant [{len(functions)} x ptr] [{entries}], align 8")
        return f"@{name}"

    def imported(self, name: str) -> str:
        """Declare memory whose address is supplied when the code is loaded; return its symbol."""
        self._globals.append(f"@{name} = external global i8")
        return f"@{name}"

    def variable(self, name: str, definition: str) -> str:
        """Define a global by its definition in LLVM IR; return its symbol, `@name`."""
        self._globals.append(f"@{name} = {definition}")
        return f"@{name}"

    def text(self) -> str:
        """Return the whole module as LLVM IR."""
        declared: dict[str, str] = {}
        for fn in self._functions.values():
            declared.update(fn.declared)
        defined = set(self._functions)
        outside = [text for name, text in sorted(declared.items()) if name not in defined]
        return "\n".join([*outside, *self._globals, *(fn.text() for fn in self._functions.values()), ""])
