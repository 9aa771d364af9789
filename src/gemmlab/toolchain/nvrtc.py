"""CUDA C++ -> cubin and PTX by NVRTC, for any architecture it knows. Needs no driver and no GPU."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import cuda_headers, listing, nvdisasm, ptxas_log
from gemmlab.toolchain.cubin import digest, read_cubin
from gemmlab.toolchain.discovery import Dependencies, Surroundings, discover, queries_files
from gemmlab.toolchain.include_path import split
from gemmlab.toolchain.searched import Searched, as_it_was
from gemmlab.toolchain.shadow import Shadow
from gemmlab.toolchain.virtual_files import CompilerInput, place

DEFAULTS = ("-std=c++17", "-lineinfo", "-default-device", "--ptxas-options=-v")
"""Options every kernel is compiled with, unless its program gives one of the same name."""

_WHEELS = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}
_ARCH = re.compile(r"sm_(\d+)([af]?)")
_FIRST_WITH = {"": 0, "a": 90, "f": 100}
_ADDING = {"-D", "-U", "-Xptxas", "-ptxas-options"}
"""Options that may be given more than once."""
_HEADERLESS = "GPU code has no headers of the host: put them and main() under #ifndef __CUDACC_RTC__"
_FOLDERLESS = "The folder of other headers is named with -I, or with `options` in the file's header."
_UNFOUND = "cannot open source file"
_SIGNS_OF_HOST_CODE = (_UNFOUND, "device-side kernel launch", 'namespace "std" has no member')
_INSTANCE = re.compile(r"__nv_name_map\(\d+\): (.*)\n +#pragma nv_mangled_name.*\n *\^\n")


@cache
def compiler() -> str:
    """The compiler's name and version, found without loading it. Raises `NoCompilerError` where there is none."""
    bindings = _version("cuda-bindings")
    if bindings is None:
        raise NoCompilerError(f"no CUDA compiler: {nvdisasm.remedy()} (no GPU or driver is needed)")
    major = _major(bindings)
    wheels = {of: version for of, name in _WHEELS.items() if (version := _version(name)) and _major(version) == of}
    if major in wheels:
        return f"NVRTC {wheels[major]}"
    nvrtc = _load()
    if nvrtc is not None:
        return f"NVRTC {'.'.join(map(str, _checked(nvrtc, nvrtc.nvrtcVersion())))}"
    if wheels:
        other = ", ".join(f"{_WHEELS[of]} {version}" for of, version in wheels.items())
        raise NoCompilerError(
            f"cuda-bindings {bindings} needs NVRTC of CUDA {major}, and here is {other}: "
            f"pip install 'gemmlab[cuda{major}]', or 'cuda-bindings=={max(wheels)}.*'"
        )
    raise NoCompilerError(f"cuda-bindings {bindings} is here without NVRTC: pip install 'gemmlab[cuda{major}]'")


@cache
def architectures() -> tuple[int, ...]:
    """Numbers of the architectures that the installed compiler makes code for: 75, 80, ..."""
    nvrtc = _required()
    return tuple(int(number) for number in _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs()))


def check_architecture(target: str, asker: str) -> None:
    """Raise `CompileError`, beginning with `asker`, when the installed compiler makes no code for `target`."""
    match = _ARCH.fullmatch(target)
    known = architectures()
    if match is None or int(match[1]) not in known or int(match[1]) < _FIRST_WITH[match[2]]:
        names = ", ".join(f"sm_{number}" for number in known)
        raise CompileError(
            f"{asker}: no code for {target!r}: {compiler()} knows {names}; "
            "from sm_90 on also those ending in a, from sm_100 on in f"
        )


def compile_cubin(program: Program, files: CompilerInput | None = None) -> Artifact:
    """Compile the instance `program.entry` for `program.target` (`"sm_90a"`); `files` are the program's, if collected.

    Texts name files by their virtual paths, so that the artifact is the same wherever the sources lie; without
    nvdisasm there is no `sass` among them. Raises `CompileError` with the source's own lines, `NoCompilerError`.
    """
    nvrtc = _required()
    check_architecture(program.target, program.kernel)
    files = files or place(program)
    try:
        with tempfile.TemporaryDirectory(prefix="gemmlab-") as folder:
            return _Compilation(nvrtc, program, files, Path(folder)).artifact()
    except OSError as error:
        reason = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
        raise CompileError(f"{program.kernel} for {program.target} cannot be compiled: {reason}") from error


def options_of(program: Program) -> list[str]:
    """Return the options for the compiler: with the architecture, without folders of headers."""
    own = split(program.options)[1]
    own_names = {_option_name(option) for option in own}
    return [f"-arch={program.target}", *(o for o in DEFAULTS if _option_name(o) not in own_names), *own]


class _Compilation:
    """The runs of the compiler that one artifact takes, with their files in `folder`."""

    def __init__(self, nvrtc: Any, program: Program, files: CompilerInput, folder: Path) -> None:
        self._nvrtc, self._program, self._files, self._folder = nvrtc, program, files, folder
        self._shadow = Shadow(folder, files.path)
        self._cuda: list[str] = []
        self._ready: tuple[str, ...] = (self._shadow.stand_ins,)

    def artifact(self) -> Artifact:
        """Compile the program and return the artifact. Raises `CompileError`.

        First the compiler follows the directives, to tell what it opens. Of that it gets a copy that looks the same on
        every machine. Where it does not open the very same files there, or may ask for others, it gets the real ones.
        """
        found = self._discovered()
        if found is not None and found.searched is not None:
            self._shadow.copy(found.data)
            with self._run(self._shadow.folders, self._shadow.redirections) as (handle, status):
                listed = self._shadow.originals(listing.opened(self._folder, self._files.headers) or ())
                opened = tuple(filter(self._where.is_own, listed))
                # An error may end the run early.
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
        """Return the files that the compiler opens; `None` when it does not tell. Later runs get CUDA's headers if
        needed.
        """
        texts = [text.encode() for text in (self._files.source, *self._files.headers.values())]
        found = None
        if not queries_files(texts):
            found, whole = self._followed(texts)
            if whole and not (found and queries_files([*found.data.values()])):
                return found
        self._cuda = cuda_headers.options(compiler())
        self._ready += tuple(cuda_headers.folders(compiler()))
        return self._followed(texts)[0]

    @property
    def _where(self) -> Surroundings:
        return Surroundings(self._files.path, self._files.main, self._ready)

    def _followed(self, texts: Sequence[bytes]) -> tuple[Dependencies | None, bool]:
        """Return the files that the directives lead to, and whether every directive leads to one."""
        with self._run(self._real_folders, {}, listing.preprocessing(self._folder)) as (handle, _):
            # A run without code counts as an error; a real error is in the log.
            whole = "error" not in _text(self._nvrtc, handle, "ProgramLog")
        listed = listing.opened(self._folder, self._files.headers)
        return (None if listed is None else discover(listed, texts, self._where)), whole

    @contextmanager
    def _run(
        self, folders: Sequence[str], texts: Mapping[str, str], options: Sequence[str] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """Run the compiler on the program; yield its handle and the status."""
        nvrtc, files = self._nvrtc, self._files
        headers = {**texts, **files.headers}
        includes = [f"-I{folder}" for folder in (*folders, self._shadow.stand_ins)]
        flags = [*options_of(self._program), *includes, *self._cuda, *listing.trace_option(self._folder), *options]
        handle = _checked(
            nvrtc,
            nvrtc.nvrtcCreateProgram(
                files.source.encode(), files.main.encode(), len(headers),
                [text.encode() for text in headers.values()], [os.fsencode(name) for name in headers],
            ),
        )  # fmt: skip
        try:
            entry = self._program.entry.encode()
            status = nvrtc.nvrtcAddNameExpression(handle, entry)[0] if entry else 0
            if not status:
                status = nvrtc.nvrtcCompileProgram(handle, len(flags), [os.fsencode(option) for option in flags])[0]
            yield handle, status
        finally:
            nvrtc.nvrtcDestroyProgram(handle)

    def _finished(self, handle: Any, status: Any, searched: Searched | None) -> Artifact:
        nvrtc, program = self._nvrtc, self._program
        log = ptxas_log.stable(_text(nvrtc, handle, "ProgramLog"))
        if status:
            message = ptxas_log.errors(log, _text(nvrtc, handle, "PTX")) or _message(nvrtc, status)
            raise CompileError(_explain(program, self._files, searched or {}, message))
        code = _bytes(nvrtc, handle, "CUBIN")
        lowered: str = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(handle, program.entry.encode())).decode()
        texts = {"ptx": _text(nvrtc, handle, "PTX"), "log": log}
        with suppress(NoCompilerError):
            texts["sass"] = nvdisasm.disassemble(code, program.kernel)
        return Artifact(
            kernel=program.kernel,
            kind="cubin",
            target=program.target,
            entry=lowered,
            code=code,
            digest=digest(code, program.kernel),
            compiler=compiler(),
            resources={**program.resources, **_resources(code, log, lowered, program.kernel)},
            exports=program.exports,
            texts=texts,
            searched=searched,
        )


def _resources(code: bytes, log: str, entry: str, kernel: str) -> dict[str, int]:
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
    # With recursion the file has no total; only the size of one frame is certain.
    stack = logged.get("stack_bytes", 0) if function.stack_bytes is None else function.stack_bytes
    return (
        facts
        | {name: logged[name] for name in ("spill_stores", "spill_loads") if name in logged}
        | {"stack_bytes": stack}
    )


def _explain(program: Program, files: CompilerInput, searched: Searched, log: str) -> str:
    log = _INSTANCE.sub(lambda match: f"instance {program.entry}: {match[1]}\n", log)
    message = files.localise_errors(log, searched)
    if _UNFOUND in log:
        message += f"\n{_FOLDERLESS}"
    if any(sign in log for sign in _SIGNS_OF_HOST_CODE):
        message += f"\n{_HEADERLESS}"
        if not cuda_headers.brings_headers(compiler()):
            message += "; CUDA's own come with NVRTC 13.3 and later, or from a toolkit that CUDA_HOME names"
    return f"{program.kernel} ({program.entry}) for {program.target} does not compile:\n{message}"


def _option_name(option: str) -> str:
    """Return an option's name: `-std` for `--std=c++20`; for an option that may be repeated, all of it."""
    name = option.split("=", 1)[0]
    short = f"-{name.lstrip('-')}"
    return option if short in _ADDING or short[:2] in _ADDING else short


def _bytes(nvrtc: Any, handle: Any, what: str) -> bytes:
    size: int = _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(handle))
    data = bytes(size)
    _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(handle, data))
    return data


def _text(nvrtc: Any, handle: Any, what: str) -> str:
    return _bytes(nvrtc, handle, what).decode("utf-8", "replace").rstrip("\0")


def _required() -> Any:
    compiler()
    nvrtc = _load()
    if nvrtc is None:
        raise NoCompilerError(f"{compiler()} is installed but cannot be loaded")
    return nvrtc


@cache
def _load() -> Any:
    """Return the binding module with its library loaded; `None` if either is missing."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError):
        return None
    return nvrtc


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status:
        raise CompileError(f"NVRTC: {_message(nvrtc, status)}")
    return values[0] if len(values) == 1 else values


def _message(nvrtc: Any, status: Any) -> str:
    text: bytes = nvrtc.nvrtcGetErrorString(status)[1]
    return text.decode()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _major(version: str) -> int:
    return int(version.split(".", 1)[0])
