"""Compile a CUDA program to a cubin with NVRTC, unless the cache has it.

A program's source key is a digest of text, options and architecture. The cache lists the artifacts of each source key
(`variants`); each variant records its compiler and the files that the compiler read, or did not find, on disk. A
variant is valid as long as these files are unchanged. The installed compiler's variant comes first, then the newest: on
a machine with no compiler or another one, a cache filled elsewhere gives the same code. Kernels of one file share their
artifact (`whole_files`). Without a compiler, code shipped in the package (`shipped_code`) is used, too. For a GPU, the
package's archive (`code_archive`) comes first, so that its code is the same with every compiler.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from pathlib import Path

from gemmlab.core.errors import NoCompilerError
from gemmlab.core.late_texts import ready_texts
from gemmlab.core.log import LOG, elapsed_ms
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import apart, code_archive, compilation, cuda_headers, disassembly, nvrtc, variants, whole_files
from gemmlab.toolchain import cache as store
from gemmlab.toolchain import shipped_code as shipped
from gemmlab.toolchain.host_headers import HOST_HEADERS
from gemmlab.toolchain.searched import as_it_was
from gemmlab.toolchain.virtual_files import CompilerInput, place


def build(program: Program) -> Artifact:
    """Return the compiled program: from the cache, made by any compiler, or compiled by the installed one.

    If gemmlab rewrites the main loop in its archive's machine code of the program, return that code, unless
    `GEMMLAB_COMPILE=1` is set. Without a compiler, code shipped with the package is used, too. The artifact's texts,
    such as the disassembly, name files by their real paths. Raises `CompileError`, and `NoCompilerError` if the code is
    not found and there is no compiler.
    """
    files = place(program)
    source = _source(program, files)
    anew = _written_anew(program, files, source)
    if anew is not None:
        return anew
    try:
        found = _found_or_compiled(program, files, source)
    except NoCompilerError as error:
        stored = _any(program, source, files) or shipped.find(program, source, files.path)
        if stored is None:
            # The remedy comes first: terminals and tables cut off the end of a long line.
            raise NoCompilerError(f"{error}; {_named(program)} for {program.target} is not in {_places()}") from error
        found = stored
    return _finished(found, files)


def for_gpu(program: Program) -> Artifact:
    """Return the code for a GPU: the archive's if it was compiled from exactly this program, else that of `build`.

    Code from the archive has no texts, such as PTX. Raises as `build` does.
    """
    return archived(program) or build(program)


def archived(program: Program) -> Artifact | None:
    """Return the archive's code of exactly this program; `None` if there is none, or `GEMMLAB_COMPILE=1` is set."""
    files = place(program)
    found = code_archive.find(program, _source(program, files), files.path)
    if found is not None:
        LOG.debug(
            "%s for %s: %s by %s, of the package", program.kernel, program.target, found.digest[:12], found.compiler
        )
    return found


def source_of(program: Program) -> str:
    """Return a program's source key: a digest of everything that the compiler gets, except for files on disk."""
    return _source(program, place(program))


def compile_here(program: Program) -> tuple[Artifact, bool]:
    """Return the installed compiler's artifact of a program, and whether the cache had it.

    Later `build`s return it, except for a program whose main loop gemmlab rewrites. Raises `CompileError`,
    `NoCompilerError`.
    """
    files = place(program)
    source, by = _source(program, files), _made_by()
    found = _own(program, source, by, files)
    if found is not None:
        listed = _file(program, files) if whole_files.serves(found, program) else source
        variants.note(listed, variants.variant(listed, by, found.searched or {}))
    return _finished(found or _compile(program, files, source, by), files), found is not None


def ship(program: Program, folder: Path) -> Path:
    """Write a program's code into `folder` for `shipped_code`, and return the file.

    If gemmlab rewrites the program's main loop, the code is the archive's; otherwise it is fetched from the cache or
    compiled. Raises `CompileError`, `NoCompilerError`.
    """
    files = place(program)
    source = _source(program, files)
    made = _written_anew(program, files, source)
    if made is None:
        # Names of this machine's folders stay out of what is shipped, so the text is that of the code itself.
        made = disassembly.with_text(_found_or_compiled(program, files, source))
    return shipped.put(folder, program, source, made)


def _written_anew(program: Program, files: CompilerInput, source: str) -> Artifact | None:
    """Return the archive's code of a program whose main loop is rewritten there, with disassembly if possible.

    `None` for any other program, or if the archive lacks it.
    """
    found = code_archive.find(program, source, files.path) if program.written_anew else None
    if found is None:
        return None
    made = _finished(found, files)
    return made if "sass" in made.texts else shipped.find(program, source, files.path) or made


def _named(program: Program) -> str:
    """Return the kernel's name, followed by the instance (`Program.entry`) if that is not the name itself."""
    return program.kernel if program.entry == program.kernel else f"{program.kernel} ({program.entry})"


def _places() -> str:
    """Return in words the places that were searched for compiled code: the cache, and the code that is shipped."""
    targets = ", ".join(shipped.targets())
    own = f" nor in the code of gemmlab (its own kernels in their defaults, for {targets})" if targets else ""
    return f"{store.cache_dir() or 'a cache (there is no home)'}{own}"


def _found_or_compiled(program: Program, files: CompilerInput, source: str) -> Artifact:
    by = _made_by()
    found = _own(program, source, by, files) or _any(program, source, files)
    LOG.debug("%s for %s: %s", program.kernel, program.target, "in the cache" if found else "not in the cache")
    if found is not None:
        return found
    started = time.perf_counter()
    made = _compile(program, files, source, by)
    LOG.debug("%s for %s: compiled in %.0f ms by %s", program.kernel, program.target, elapsed_ms(started), by)
    return made


def _own(program: Program, source: str, by: str, files: CompilerInput) -> Artifact | None:
    """Return an artifact by the compiler `by` that the cache has and that is still valid; `None` if there is none."""
    # Code that depends on no other file is found without the list.
    bare = store.load(variants.variant(source, by, {}).key)
    return bare or _valid(program, source, files, by)


def _any(program: Program, source: str, files: CompilerInput) -> Artifact | None:
    """Return the newest valid artifact by any compiler from the cache; `None` if there is none."""
    return _valid(program, source, files)


def _valid(program: Program, source: str, files: CompilerInput, by: str = "") -> Artifact | None:
    """Return the newest valid artifact from the cache, the program's own or its file's; `None` if there is none.

    `by` is the only compiler whose code is taken; empty for any.
    """

    def fits(each: variants.Variant) -> bool:
        return by in ("", each.made_by) and as_it_was(each.searched, files.path)

    return variants.find(source, fits) or whole_files.find(program, _file(program, files), fits)


def _compile(program: Program, files: CompilerInput, source: str, by: str) -> Artifact:
    # The compiler may crash on code that was never compiled here.
    foreign = apart.is_foreign(program)
    made = apart.compile_apart(program) if foreign else compilation.compile_cubin(program, files)
    if made.searched is not None and not whole_files.put(_file(program, files), by, made, program):
        found = variants.variant(source, by, made.searched)
        if store.store(found.key, made):
            variants.note(source, found)
    return made


def _source(program: Program, files: CompilerInput) -> str:
    """Return the source key (see `source_of`) of a program whose texts are `files`."""
    return store.key_of("cuda 2", program.kernel, program.entry, *_compiled_texts(program, files))


def _file(program: Program, files: CompilerInput) -> str:
    """Return the source key that all kernels of a file share: as that of `_source`, without the kernel's name."""
    return store.key_of("cuda file 1", *_compiled_texts(program, files))


def _compiled_texts(program: Program, files: CompilerInput) -> list[str]:
    """Return the texts and options that the compiler gets, without the name of the kernel."""
    headers = [part for name, text in sorted(files.headers.items()) for part in (name, text)]
    options = compilation.options_of(program)
    return [
        files.main, files.source, _stand_ins(), str(len(files.path.named)), str(len(options)), *options, *headers,
    ]  # fmt: skip


@cache
def _stand_ins() -> str:
    return store.key_of(*(part for pair in sorted(HOST_HEADERS.items()) for part in pair))


def _made_by() -> str:
    """Return the compiler's name, and the version of CUDA's headers if it does not contain them.

    Raises `NoCompilerError`.
    """
    compiler = nvrtc.compiler()
    own = cuda_headers.brings_headers(compiler)
    return compiler if own else f"{compiler}, headers {cuda_headers.version(compiler)}"


def _finished(artifact: Artifact, files: CompilerInput) -> Artifact:
    searched = artifact.searched or {}
    texts = {name: files.localise(text, searched) for name, text in ready_texts(artifact.texts).items()}
    return disassembly.with_text(replace(artifact, texts=texts), lambda text: files.localise(text, searched))
