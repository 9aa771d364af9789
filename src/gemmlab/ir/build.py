"""Compile a program to an artifact with LLVM, unless the cache has it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache

from gemmlab.core.log import LOG, elapsed_ms
from gemmlab.core.program import Artifact, Program
from gemmlab.ir import GENERATOR, llvm
from gemmlab.ir.compile import LoadedObject, compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target, host_target
from gemmlab.toolchain import cache as store


@cache
def compiler() -> str:
    """Return the code generator's name, with the versions of llvmlite and of the LLVM in it."""
    binding = llvm.binding()
    import llvmlite

    return f"llvmlite {llvmlite.__version__} (LLVM {'.'.join(map(str, binding.llvm_version_info))})"


def generator_fingerprint() -> str:
    """Return a key that changes with the code generator's source; empty if a file of it has changed since this process
    began.
    """
    return GENERATOR.fingerprint()


def build(program: Program, target: Target) -> Artifact:
    """Return the compiled program, from the cache if it is there; a program without a fingerprint is never cached.

    Raises `CompileError`, `MemoryError`.
    """
    if not program.fingerprint:
        return _compile(program, target)
    key = store.key_of(
        program.kernel, program.target, program.entry, program.fingerprint, target.cpu, target.features, compiler()
    )
    found = store.load(key)
    LOG.debug("%s for %s: %s", program.kernel, program.target, "in the cache" if found else "not in the cache")
    if found is None:
        started = time.perf_counter()
        found = _compile(program, target)
        LOG.debug("%s for %s: compiled in %.0f ms", program.kernel, program.target, elapsed_ms(started))
        store.store(key, found)
    return found


def load_functions(name: str, symbols: Sequence[str], emit: Callable[[Module], object]) -> LoadedObject:
    """Build and link functions for this machine that belong to no kernel.

    `emit` adds them to a module as exported functions with the names `symbols`; `name` stands for them in the cache.
    Raises `CompileError`, `MemoryError`.
    """
    target, (entry, *others) = host_target(), symbols

    def text() -> str:
        module = Module(target)
        emit(module)
        return module.text()

    program = Program(name, "llvm", target.name, entry, generator_fingerprint(), text, exports=tuple(others))
    return load_object(build(program, target).code, symbols)


def _compile(program: Program, target: Target) -> Artifact:
    code = compile_object(program.source(), target, vectorize=program.vectorize)
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
