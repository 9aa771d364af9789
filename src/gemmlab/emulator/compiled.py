"""Compiled pieces of the emulator, taken from the artifact cache or compiled now, and linked into this process."""

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
    """Compile the code that `emit` writes, or fetch it, link it, and return the addresses of its `symbols`.

    `name` distinguishes it from other pieces. `sources` are the source files that it depends on besides the generator.
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
        # An instruction without meaning has an error of its own; any other failure is a form that the
        # table does not handle.
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise
    return load_object(artifact.code, symbols, imports).addresses
