"""The machine code that comes with the package: the compiler's, or the compiler's with main loops written anew."""

from __future__ import annotations

from dataclasses import replace

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact, Program
from gemmlab.sass.checking.control_codes import Finding, check_function
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.sass.rewriting.compiled_loop import compiled_loops
from gemmlab.sass.rewriting.written_loop import rewritten
from gemmlab.toolchain.build_cuda import compile_here
from gemmlab.toolchain.cubin import digest, read_cubin
from gemmlab.toolchain.nvdisasm import disassemble


def archive_code(program: Program) -> Artifact:
    """Return the machine code that the archive has of a program, made with the installed compiler.

    Raises `CompileError`, and `UsageError` if a main loop that is to be written anew cannot be, or if its new control
    codes have a fault.
    """
    artifact, _ = compile_here(program)
    return written_anew(artifact) if program.written_anew else artifact


def written_anew(artifact: Artifact) -> Artifact:
    """Return compiled code with its main loops written anew, and without PTX. Raises `UsageError` as `archive_code`."""
    function = _function(artifact, artifact.texts["sass"])
    code = rewritten(artifact.code, function, name=artifact.kernel)
    text = disassemble(code, artifact.kernel)
    _require_sound(function, _function(artifact, text), artifact.target)
    registers = read_cubin(code, artifact.kernel).functions[function.name].registers
    return replace(
        artifact,
        code=code,
        digest=digest(code, artifact.kernel),
        resources={**artifact.resources, "registers": registers},
        texts={"sass": text},
    )


def _function(artifact: Artifact, text: str) -> SassFunction:
    functions = [*parse(text).values()]
    if len(functions) != 1:
        raise UsageError(f"{artifact.kernel}: its machine code has {len(functions)} functions; there has to be one")
    return functions[0]


def _require_sound(compiled: SassFunction, made: SassFunction, arch: str) -> None:
    """Raise `UsageError` for a fault of the control codes in a new loop, and for one elsewhere that the compiler's code
    does not have at the same place.
    """
    anew = [range(loop.start, loop.stop + loop.room) for loop in compiled_loops(compiled)]
    known = {_place(finding) for finding in check_function(compiled, arch)}
    for finding in check_function(made, arch):
        inside = any(one.address // 16 in some for one in (finding.producer, finding.consumer) for some in anew)
        if inside or _place(finding) not in known:
            raise UsageError(str(finding))


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.producer.address, finding.consumer.address, finding.register
