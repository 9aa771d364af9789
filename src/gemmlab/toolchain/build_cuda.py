"""CUDA program -> cubin through NVRTC, with the cache in between.

An entry is found by everything that determines it: source, headers, options, architecture, compiler. Beside it lies
an alias without the compiler: it leads to the newest entry of the same source, whoever compiled it, and serves a
machine that has no compiler or another one. So a cache that one machine filled gives another the very same code. By
the alias code that the package was shipped with is found, where there is no compiler.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gemmlab.core.errors import NoCompilerError
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import cache as store
from gemmlab.toolchain import cuda_headers, nvdisasm, nvrtc
from gemmlab.toolchain import shipped_code as shipped
from gemmlab.toolchain.virtual_files import Placed, place


def build(program: Program) -> Artifact:
    """The compiled program: from the cache, by whatever compiler, or else made by the one installed.

    Where there is none, also from what the package was shipped with. Line information names `program.path`. Raises
    `CompileError`, and `NoCompilerError` when it can neither be found nor made.
    """
    files = place(program)
    alias = _alias(program, files)
    try:
        found = _kept_or_made(program, files, alias)
    except NoCompilerError as error:
        kept = store.follow(alias) or shipped.find(program, alias)
        if kept is None:
            # What to do about it comes first: it is what a terminal, or a table, shows of a long line.
            raise NoCompilerError(f"{error}; {_named(program)} for {program.target} is not in {_places()}") from error
        found = kept
    return _finished(found, files)


def compile_here(program: Program) -> tuple[Artifact, bool]:
    """What the installed compiler makes of the program, kept for `build`; and whether the cache had it already.

    Raises `CompileError`, `NoCompilerError`.
    """
    files = place(program)
    alias = _alias(program, files)
    key = _key(alias, files)
    found = store.load(key)
    if found is not None:
        store.point(alias, key)
    return _finished(found or _compile(program, files, alias, key), files), found is not None


def ship(program: Program, folder: Path) -> Path:
    """Compile, or fetch from the cache, and write what `shipped.find` looks for once `folder` is in a package.

    Raises `CompileError`, `NoCompilerError`.
    """
    files = place(program)
    alias = _alias(program, files)
    made = _kept_or_made(program, files, alias)
    if "sass" not in made.texts:
        made = replace(made, texts={**made.texts, "sass": nvdisasm.disassemble(made.code, made.kernel)})
    return shipped.put(folder, program, alias, made)


def _named(program: Program) -> str:
    """The kernel, and which of its instances unless there is but one of that name."""
    return program.kernel if program.entry == program.kernel else f"{program.kernel} ({program.entry})"


def _places() -> str:
    """Where code that no compiler is needed for was looked for."""
    targets = ", ".join(shipped.targets())
    brought = f" nor in what gemmlab brings (its own kernels in their defaults, for {targets})" if targets else ""
    return f"{store.cache_dir()}{brought}"


def _kept_or_made(program: Program, files: Placed, alias: str) -> Artifact:
    key = _key(alias, files)
    return store.load(key) or store.follow(alias) or _compile(program, files, alias, key)


def _compile(program: Program, files: Placed, alias: str, key: str) -> Artifact:
    made = nvrtc.compile_cubin(program, files)
    if store.store(key, made):
        store.point(alias, key)
    return made


def _alias(program: Program, files: Placed) -> str:
    headers = [part for name, text in sorted(files.headers.items()) for part in (name, text)]
    options = nvrtc.options_of(program)
    return store.key_of(
        "cuda", program.kernel, program.entry, files.main, files.source, str(len(options)), *options, *headers
    )


def _key(alias: str, files: Placed) -> str:
    compiler = nvrtc.compiler()
    return store.key_of(alias, compiler, cuda_headers.version(compiler) if files.elsewhere else "")


def _finished(artifact: Artifact, files: Placed) -> Artifact:
    texts = {name: files.localise(text) for name, text in artifact.texts.items()}
    if "sass" not in texts:
        # Compiled where there was no disassembler.
        with suppress(NoCompilerError):
            texts["sass"] = files.localise(nvdisasm.disassemble(artifact.code, artifact.kernel))
    return replace(artifact, texts=texts)
