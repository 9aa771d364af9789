"""The source of a kernel's machine code: CUDA C++ as text or in a file, PTX, or a cubin."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.program import Artifact, Program
from gemmlab.kernels.cuda_file.device_code import LIKE_NVCC, device_code, included
from gemmlab.kernels.cuda_file.file_kernels import kernels_of, named
from gemmlab.kernels.cuda_file.instance import COMMON
from gemmlab.kernels.cuda_file.signature import Signature
from gemmlab.kernels.cuda_file.type_names import type_names, with_types
from gemmlab.kernels.kernel import Kernel
from gemmlab.toolchain import disassembly, ptxas
from gemmlab.toolchain.cubin import Cubin, digest, read_cubin

Source = str | bytes | os.PathLike[str]
_IDENTIFIER = re.compile(r"[a-z]\w*")
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class CudaText:
    """CUDA C++; `path` is its file, empty for text without a file."""

    text: str
    path: str
    shipped: Kernel | None = None
    """The kernel of gemmlab's catalog, if its id was given as the source; `None` for text and files."""

    def named(self, kernel: str, target: str) -> str:
        """Return the name expression to compile: `kernel`, or for the bare id of a kernel of the catalog the instance
        with its default parameters.
        """
        if self.shipped is None or kernel != self.shipped.id:
            return kernel
        default = self.shipped.instances(self.shipped.configure())[0]
        return self.shipped.program(default, target).entry

    def program(self, kernel: str, target: str, options: Sequence[str]) -> Program:
        """Return the program that a device builds to run the instance that the name expression `kernel` names.

        Headers are searched in the folders of `options` first, then among those that the ladder's kernels share.
        """
        parts = (self.text, kernel, self.path, *options)
        whole = (*options, *LIKE_NVCC, f"-I{COMMON}")
        code = device_code(self.text, self.path, whole, kernel)
        return Program(
            kernel=plain(kernel),
            language="cuda",
            target=target,
            entry=kernel,
            fingerprint="" if self.path else hashlib.sha256(repr(parts).encode()).hexdigest(),
            emit=lambda: code.text,
            path=self.path,
            options=whole,
            headers=code.headers,
        )

    def signature(self, kernel: str, options: Sequence[str] = ()) -> Signature | None:
        """Return the kernel's arguments as the text defines them, or a header that it includes; `None` unless exactly
        one kernel has that name.
        """
        headers = included(self.text, self.path, options)
        found = named(kernels_of(self.text, headers), kernel.partition("<")[0].strip())
        if len(found) != 1:
            return None
        return with_types(found[0].signature, type_names((self.text, *(one.code.text for one in headers)), options))

    def texts(self, kernel: str) -> dict[str, str]:
        """Return the text under the name of its file, or under one made from the kernel's name if it has no file."""
        return {self.path or f"{kernel}.cu": self.text}

    def hint(self, kernel: str, options: Sequence[str] = ()) -> str:
        """Return what may be wrong with the name of a kernel that does not compile; empty if the name seems right.

        A macro may make a kernel, so this is no reason to refuse the name beforehand.
        """
        every = kernels_of(self.text, included(self.text, self.path, options))
        wanted = kernel.partition("<")[0].strip()
        found = [one.signature for one in named(every, wanted)]
        if not found:
            known = _listed(one.signature.name for one in every)
            return f"launch: no kernel named {wanted!r} in the source; there are {known}"
        if all(s.template for s in found) and "<" not in kernel:
            return f'launch: {wanted} is a template; name an instance: "{_instance(wanted, found[0])}"'
        if wanted not in {s.name for s in found}:
            return f"launch: {wanted!r} is in a namespace; name it with that: {_listed(s.name for s in found)}"
        return ""


@dataclass(frozen=True, slots=True)
class ReadyCubin:
    """Compiled machine code, given by the user."""

    data: bytes
    name: str
    cubin: Cubin
    origin: str = "a ready cubin"
    """The origin of the code in words."""

    @property
    def kernels(self) -> list[str]:
        """The full names of the kernels of the code."""
        return [name for name, function in self.cubin.functions.items() if function.entry]

    def artifact(self, kernel: str, *, disassembled: bool) -> Artifact:
        """Return the code with `kernel` as its entry. The name may be unmangled if that is unambiguous.

        With `disassembled` it has its machine code as text. Raises `UsageError`, which lists the kernels of the code,
        if none or several have the name.
        """
        named = [name for name in self.kernels if kernel in (name, plain(name))]
        if len(named) != 1:
            known = ", ".join(f"{name} ({plain(name)})" if plain(name) != name else name for name in self.kernels)
            how = "several kernels are" if named else "no kernel is"
            raise UsageError(f"{self.name}: {how} named {kernel!r}; there are {known or 'none'}")
        texts = {"sass": _disassembled(self.data, self.name)} if disassembled else {}
        return Artifact(
            kernel=plain(named[0]), kind="cubin", target=self.cubin.arch, entry=named[0], code=self.data,
            digest=digest(self.data, self.name), compiler=self.origin, texts=texts,
        )  # fmt: skip

    def texts(self, _kernel: str) -> dict[str, str]:
        """Return no text: the files that the code names are read if they exist."""
        return {}


@dataclass(frozen=True, slots=True)
class PtxText:
    """PTX, given by the user."""

    data: bytes
    name: str

    def assembled(self, arch: str) -> ReadyCubin:
        """Return the machine code for an architecture. Raises `CompileError`, `NoCompilerError`."""
        return replace(_ready(_assembled(self.data, arch, self.name), self.name), origin=f"PTX, ptxas{ptxas.release()}")

    @property
    def kernels(self) -> list[str]:
        """The full names of the kernels of the code."""
        text = _COMMENT.sub("", self.data.decode("utf-8", "replace"))
        return list(dict.fromkeys(_ENTRY.findall(text)))


def read_source(source: Source) -> CudaText | ReadyCubin | PtxText:
    """Read CUDA C++ (text, a file, a kernel of the catalog), PTX (a file) or machine code (a file, bytes).

    A `str` of one line that ends in `.cu`, `.cuh`, `.ptx` or `.cubin` is a path, a single word that begins with a small
    letter the id of a kernel for GPUs, as `gemmlab list` shows it, and any other `str` CUDA C++. Raises
    `ArgumentTypeError` for other types, `UsageError` for an unknown id, a file that cannot be read or is no text, and
    an invalid cubin.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _ready(bytes(source), "the cubin")
    if isinstance(source, str) and _IDENTIFIER.fullmatch(source):
        return _of_catalog(source)
    if isinstance(source, str) and ("\n" in source or not source.strip().endswith((".cu", ".cuh", ".ptx", ".cubin"))):
        return CudaText(encodable("source", source), "")
    if not isinstance(source, str | os.PathLike):
        raise ArgumentTypeError(
            f"launch: source is a {type(source).__name__}; it must be CUDA C++ text, a path or a cubin's bytes"
        )
    path = Path(source)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        # ValueError: a name that no file can have.
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"launch: cannot read {path}: {why}") from error
    if data.startswith(_ELF):
        return _ready(data, path.name)
    if path.suffix == ".ptx":
        return PtxText(data, path.name)
    try:
        return CudaText(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"launch: {path} is neither a cubin nor UTF-8 text (byte {error.start})") from error


def _of_catalog(name: str) -> CudaText:
    from gemmlab.kernels.catalog import find_kernel

    found = find_kernel(name)
    if found.device != "cuda":
        raise UsageError(f"launch: {name} is a kernel for {found.device}; gemmlab.launch runs kernels for GPUs")
    return CudaText(found.path.read_text(encoding="utf-8"), str(found.path), found)


def encodable(what: str, text: str) -> str:
    """Return `text` if it can be encoded as UTF-8; `what` is its name in errors.

    Raises `ArgumentTypeError` for anything but a `str`, `UsageError` if it contains a lone surrogate.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"launch: {what} is a {type(text).__name__}, not a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"launch: {what} is no text: character {error.start + 1}, {text[error.start]!a}, is half a surrogate pair"
        ) from error
    return text


def plain(name: str) -> str:
    """Return a kernel's bare name: `tile` for `tile<32>`, `mine::tile` and `_Z4tileILi32EEvPf`."""
    rest, found = re.sub(r"^_ZN?", "", name), ""
    while rest != name and (length := re.match(r"\d+", rest)):
        end = length.end() + int(length[0])
        found, rest = rest[length.end() : end], rest[end:]
        if not name.startswith("_ZN"):
            break
    return found or name.partition("<")[0].strip().rpartition("::")[2]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


def _instance(name: str, signature: Signature) -> str:
    """Return an example of the template's instances, `tile<>` if all parameters have defaults."""
    if all(each.default for each in signature.template):
        return f"{name}<>"
    examples = ["float" if each.is_type else "true" if each.type == "bool" else "32" for each in signature.template]
    return f"{name}<{', '.join(examples)}>"


@lru_cache(maxsize=32)
def _assembled(data: bytes, arch: str, name: str) -> bytes:
    return ptxas.assemble(data, arch, name)


@lru_cache(maxsize=32)
def _disassembled(data: bytes, name: str) -> str:
    return disassembly.text_of(data, name)


def _ready(data: bytes, name: str) -> ReadyCubin:
    return ReadyCubin(data, name, read_cubin(data, name))
