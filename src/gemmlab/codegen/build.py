"""Program -> Artifact through LLVM, with the cache in between."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from gemmlab.codegen.compile import compile_object
from gemmlab.codegen.target import Target
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import cache as store

_HERE = Path(__file__).parent


@cache
def compiler() -> str:
    """The code generator's name: llvmlite and the LLVM in it."""
    import llvmlite
    from llvmlite import binding

    return f"llvmlite {llvmlite.__version__} (LLVM {'.'.join(map(str, binding.llvm_version_info))})"


@cache
def generator_fingerprint() -> str:
    """Changes whenever the code generator's own source does."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build(program: Program, target: Target) -> Artifact:
    """The compiled program, from the cache when it is there. Raises `CompileError`."""
    key = store.key_of(
        program.kernel, program.target, program.entry, program.fingerprint, target.cpu, target.features, compiler()
    )
    found = store.load(key)
    if found is not None:
        return found
    code = compile_object(program.emit(), target, vectorize=program.vectorize)
    artifact = Artifact(
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
    store.store(key, artifact)
    return artifact
