"""Compile CUDA C++ to cubin and PTX with NVRTC: the same bytes on every machine, without driver and GPU."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gemmlab.core.errors import CompileError
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import cuda_headers, disassembly, listing, nvrtc, ptxas_log
from gemmlab.toolchain.compile_message import explain
from gemmlab.toolchain.cubin import digest, read_cubin
from gemmlab.toolchain.discovery import Dependencies, Surroundings, discover, queries_files
from gemmlab.toolchain.include_path import split
from gemmlab.toolchain.nvrtc import check_architecture, checked, contents, loaded, message, text_of
from gemmlab.toolchain.searched import Searched, as_it_was
from gemmlab.toolchain.shadow import Shadow
from gemmlab.toolchain.virtual_files import CompilerInput, place

DEFAULTS = ("-std=c++17", "-lineinfo", "-default-device", "--ptxas-options=-v")
"""Options for every program, unless it has an option of the same name."""
_ADDING = {"-D", "-U", "-Xptxas", "-ptxas-options"}
"""Options that may occur more than once: a program's own are added to those of `DEFAULTS`."""


def compile_cubin(program: Program, files: CompilerInput | None = None) -> Artifact:
    """Compile the instance `program.entry` for `program.target` (`"sm_90a"`). No cache is used.

    `files` are the texts and folders that `place` collects; `None` to collect them here. The artifact names files by
    their virtual paths, so that it is the same wherever the sources lie; only if the real headers are compiled (see
    `_Compilation.artifact`), it names these by their real paths. nvdisasm makes its `sass` when it is first read.
    Raises `CompileError` with the compiler's messages, `NoCompilerError`.
    """
    library = loaded()
    check_architecture(program.target, program.kernel)
    files = files or place(program)
    try:
        with tempfile.TemporaryDirectory(prefix="gemmlab-") as folder:
            return _Compilation(library, program, files, Path(folder)).artifact()
    except OSError as error:
        reason = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
        raise CompileError(f"{program.kernel} for {program.target} cannot be compiled: {reason}") from error


def options_of(program: Program) -> list[str]:
    """Return the compiler options of a program: architecture, defaults and its own, without folders of headers."""
    own = split(program.options)[1]
    own_names = {_option_name(option) for option in own}
    return [f"-arch={program.target}", *(o for o in DEFAULTS if _option_name(o) not in own_names), *own]


class _Compilation:
    """The runs of the compiler for one artifact; their temporary files are in `folder`."""

    def __init__(self, library: Any, program: Program, files: CompilerInput, folder: Path) -> None:
        self._library, self._program, self._files, self._folder = library, program, files, folder
        self._shadow = Shadow(folder, files.path)
        self._cuda: list[str] = []
        self._ready: tuple[str, ...] = (self._shadow.stand_ins,)

    def artifact(self) -> Artifact:
        """Compile the program and return the artifact. Raises `CompileError`.

        First the compiler only preprocesses, to list the files that it opens. Then it compiles with a copy of these
        files that looks the same on every machine (`shadow`). If it cannot list them, tests for files whose names are
        unknown, or does not open the same files in the copy, it compiles with the real ones.
        """
        found = self._discovered()
        if found is not None and found.searched is not None:
            self._shadow.copy(found.data)
            with self._run(self._shadow.folders, self._shadow.redirections) as (handle, status):
                listed = self._shadow.originals(listing.opened(self._folder, self._files.headers) or ())
                opened = tuple(filter(self._where.is_own, listed))
                # If there is an error, the run may end before it has opened all files.
                if opened == found.opened[: len(opened) if status else None]:
                    return self._finished(handle, status, found.searched)
        with self._run(self._real_folders, {}) as (handle, status):
            known = found.searched if found else None
            still = known is not None and as_it_was(known, self._files.path)
            return self._finished(handle, status, known if still else None)

    @property
    def _real_folders(self) -> list[str]:
        return list(self._files.path.folders.values())

    def _discovered(self) -> Dependencies | None:
        """Return the files that the compiler opens; `None` if it does not list them.

        If the program needs CUDA's headers, later runs get them, too.
        """
        texts = [text.encode() for text in (self._files.source, *self._files.headers.values())]
        found = None
        if not queries_files(texts):
            found, whole = self._followed(texts)
            if whole and not (found and queries_files([*found.data.values()])):
                return found
        self._cuda = cuda_headers.options(nvrtc.compiler())
        self._ready += tuple(cuda_headers.folders(nvrtc.compiler()))
        return self._followed(texts)[0]

    @property
    def _where(self) -> Surroundings:
        return Surroundings(self._files.path, self._files.main, self._ready)

    def _followed(self, texts: Sequence[bytes]) -> tuple[Dependencies | None, bool]:
        """Preprocess the program. Return the files that it opens, `None` if unknown, and whether there was no error."""
        with self._run(self._real_folders, {}, listing.preprocessing(self._folder)) as (handle, _):
            # A run without code counts as an error; a real error is in the log.
            whole = "error" not in text_of(self._library, handle, "ProgramLog")
        listed = listing.opened(self._folder, self._files.headers)
        return (None if listed is None else discover(listed, texts, self._where)), whole

    @contextmanager
    def _run(
        self, folders: Sequence[str], texts: Mapping[str, str], options: Sequence[str] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """Run the compiler on the program; yield NVRTC's handle of the program and the status, 0 for success.

        `folders` are searched for headers, `texts` are more headers by name, `options` more options.
        """
        library, files = self._library, self._files
        headers = {**texts, **files.headers}
        includes = [f"-I{folder}" for folder in (*folders, self._shadow.stand_ins)]
        flags = [*options_of(self._program), *includes, *self._cuda, *listing.trace_option(self._folder), *options]
        handle = checked(
            library,
            library.nvrtcCreateProgram(
                files.source.encode(), files.main.encode(), len(headers),
                [text.encode() for text in headers.values()], [os.fsencode(name) for name in headers],
            ),
        )  # fmt: skip
        try:
            entry = self._program.entry.encode()
            status = library.nvrtcAddNameExpression(handle, entry)[0] if entry else 0
            if not status:
                status = library.nvrtcCompileProgram(handle, len(flags), [os.fsencode(option) for option in flags])[0]
            yield handle, status
        finally:
            library.nvrtcDestroyProgram(handle)

    def _finished(self, handle: Any, status: Any, searched: Searched | None) -> Artifact:
        library, program = self._library, self._program
        log = ptxas_log.stable(text_of(library, handle, "ProgramLog"))
        if status:
            reason = ptxas_log.errors(log, text_of(library, handle, "PTX")) or message(library, status)
            raise CompileError(explain(program, self._files, searched or {}, reason))
        code = contents(library, handle, "CUBIN")
        lowered: str = checked(library, library.nvrtcGetLoweredName(handle, program.entry.encode())).decode()
        texts = {"ptx": text_of(library, handle, "PTX"), "log": log}
        made = Artifact(
            kernel=program.kernel,
            kind="cubin",
            target=program.target,
            entry=lowered,
            code=code,
            digest=digest(code, program.kernel),
            compiler=nvrtc.compiler(),
            resources={**program.resources, **resources_of(code, log, lowered, program.kernel)},
            exports=program.exports,
            texts=texts,
            searched=searched,
        )
        return disassembly.with_text(made)


def resources_of(code: bytes, log: str, entry: str, kernel: str) -> dict[str, int]:
    """Return the resources of the function `entry` (`Artifact.resources`), by a cubin and the compiler's log.

    `kernel` names the code in errors. Raises `UsageError` if the cubin is malformed.
    """
    function = read_cubin(code, kernel).functions[entry]
    facts = {
        "registers": function.registers,
        "barriers": function.barriers,
        "static_smem_bytes": function.static_smem_bytes,
        "local_bytes": function.local_bytes,
        "code_bytes": len(function.code),
    }
    if function.max_threads is not None:
        facts["max_threads"] = function.max_threads
    logged = ptxas_log.facts_of(log, entry)
    # With recursion the cubin has no total; only the size of the kernel's own frame is known.
    stack = logged.get("stack_bytes", 0) if function.stack_bytes is None else function.stack_bytes
    return (
        facts
        | {name: logged[name] for name in ("spill_stores", "spill_loads") if name in logged}
        | {"stack_bytes": stack}
    )


def _option_name(option: str) -> str:
    """Return the name of an option: `-std` for `--std=c++20`; the whole option if it may occur more than once."""
    name = option.split("=", 1)[0]
    short = f"-{name.lstrip('-')}"
    return option if short in _ADDING or short[:2] in _ADDING else short
