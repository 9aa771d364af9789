"""Compiled pieces of the emulator: from the artifact cache, or made now; linked into this process."""

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
    """Addresses of `symbols` in the code that `emit` writes; `name` tells it from other pieces.

    `sources`: what the code comes from beside the generator.
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
        # What has no meaning is told by its own name; anything else is a form that nobody thought of.
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise
    return load_object(artifact.code, symbols, imports).addresses
