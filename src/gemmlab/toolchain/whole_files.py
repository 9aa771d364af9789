"""Code that serves several kernels of a file, so that the file is compiled once for all of them.

Which kernel a program names does not matter to the compiler: its code has all kernels of the file. Only an instance of
a template is compiled because it is named, so instances share no code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import cache as store
from gemmlab.toolchain import compilation, variants
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.toolchain.variants import Variant

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def find(program: Program, file: str, fits: Callable[[Variant], bool]) -> Artifact | None:
    """Return a program's artifact, taken from the code of its whole file in the cache; `None` if there is none.

    `file` is the file's source key, and `fits` says which variants are valid.
    """
    found = variants.find(file, fits) if _PLAIN.fullmatch(program.entry) else None
    return None if found is None else _of_kernel(found, program)


def put(file: str, made_by: str, made: Artifact, program: Program) -> bool:
    """Store an artifact for all kernels of its file; return whether it serves them and that was possible.

    `file` is the file's source key.
    """
    if made.searched is None or not serves(made, program):
        return False
    found = variants.variant(file, made_by, made.searched)
    return store.store(found.key, made) and variants.note(file, found)


def serves(made: Artifact, program: Program) -> bool:
    """Return whether a program's artifact is also that of the other kernels of its file."""
    return bool(_PLAIN.fullmatch(program.entry)) and _of_kernel(made, program) == made


def _of_kernel(made: Artifact, program: Program) -> Artifact | None:
    """Return the code with the kernel of `program` as its entry.

    `None` unless exactly one kernel has that name, and for a static kernel, which the compiler reports as unused.
    """
    # A kernel of C++ has its parameters behind its name; I begins the arguments of a template.
    mangled = re.compile(rf"_Z{len(program.entry)}{program.entry}(?!I)\w+")
    functions = read_cubin(made.code, program.kernel).functions.values()
    named = [one.name for one in functions if one.entry and (one.name == program.entry or mangled.fullmatch(one.name))]
    log = made.texts.get("log", "")
    # A static kernel is in the code, but the compiler warns of it unless the program names it.
    if len(named) != 1 or f'"{program.entry}" was declared but never referenced' in log:
        return None
    facts = compilation.resources_of(made.code, log, named[0], program.kernel)
    return replace(
        made, kernel=program.kernel, entry=named[0], resources={**program.resources, **facts}, exports=program.exports
    )
