"""Compiled code of the emulator: compiled once, stored in the artifact cache, and linked into this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gemmlab.core.errors import CompileError, UsageError
from gemmlab.core.program import Program
from gemmlab.core.sources import Sources
from gemmlab.ir import GENERATOR
from gemmlab.ir.build import build
from gemmlab.ir.compile import load_object
from gemmlab.ir.target import Target, host_target

_HERE = Path(__file__).parent
SOURCES = Sources([*_HERE.glob("*.py"), *_HERE.glob("isa/*.py")])


def compiled(
    name: str, symbols: Sequence[str], emit: Callable[[Target], str], imports: Mapping[str, int],
    sources: Sources = SOURCES,
) -> Mapping[str, int]:  # fmt: skip
    """Return the addresses of `symbols` in the code that `emit` returns as LLVM IR for a target.

    The machine code comes from the artifact cache; if it is not there, it is compiled and stored. `name` and the text
    of `sources`, the files on which the code depends, identify it there. `imports` are the addresses of the outside
    symbols that the code uses. Raises `UsageError` if `emit` does, `MemoryError`, and `CompileError` for other
    failures.
    """
    target = host_target()
    generator, own = GENERATOR.fingerprint(), sources.fingerprint()
    program = Program(
        kernel=name,
        language="llvm",
        target=target.name,
        entry=symbols[0],
        fingerprint=generator and own and f"{generator} {own}",
        emit=lambda: emit(target),
    )
    try:
        artifact = build(program, target)
    except CompileError as error:
        # `UsageError` names the instruction already; any other failure means that the opcode's function does not
        # handle this form.
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise
    return load_object(artifact.code, symbols, imports).addresses
