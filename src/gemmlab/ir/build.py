"""Compile a program to an artifact through LLVM, with the cache in between."""

from __future__ import annotations

import hashlib
from functools import cache

from gemmlab.core.errors import CompileError
from gemmlab.core.program import Artifact, Program
from gemmlab.ir import GENERATOR, llvm
from gemmlab.ir.compile import compile_object
from gemmlab.ir.target import Target
from gemmlab.toolchain import cache as store


@cache
def compiler() -> str:
    """The code generator's name: llvmlite and the LLVM in it."""
    binding = llvm.binding()
    import llvmlite

    return f"llvmlite {llvmlite.__version__} (LLVM {'.'.join(map(str, binding.llvm_version_info))})"


def generator_fingerprint() -> str:
    """Return a key that changes with the code generator's own source; empty if that has changed since this process
    began.
    """
    return GENERATOR.fingerprint()


def build(program: Program, target: Target) -> Artifact:
    """Return the compiled program, from the cache if it is there. Raises `CompileError`, `MemoryError`."""
    if not program.fingerprint:
        return _compile(program, target)
    key = store.key_of(
        program.kernel, program.target, program.entry, program.fingerprint, target.cpu, target.features, compiler()
    )
    found = store.load(key)
    if found is None:
        found = _compile(program, target)
        store.store(key, found)
    return found


def _compile(program: Program, target: Target) -> Artifact:
    try:
        text = program.emit()
    except MemoryError:
        raise
    except Exception as error:
        raise CompileError(f"{program.kernel} for {program.target}: {type(error).__name__}: {error}") from error
    code = compile_object(text, target, vectorize=program.vectorize)
    return Artifact(
        kernel=program.kernel,
        kind="object",
        target=program.target,
        entry=program.entry,
        code=code,
        digest=hashlib.sha256(code).hexdigest(),
        compiler=compiler(),
        resources={**program.resources, "code_bytes": len(code)},
        exports=program.exports,
    )
