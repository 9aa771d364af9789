"""The kernels of a CUDA file: those that it defines, and those of the headers that it includes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmlab.kernels.cuda_file.device_code import Header, included
from gemmlab.kernels.cuda_file.signature import Signature, signatures


@dataclass(frozen=True, slots=True)
class FileKernel:
    """A kernel of a file; `header` is the name of the header that defines it, empty for the file itself."""

    signature: Signature
    header: str = ""

    def __str__(self) -> str:
        place = f"{self.header}: " if self.header else ""
        return f"{place}line {self.signature.line}: {self.signature}"


def kernels_of(text: str, headers: Sequence[Header]) -> list[FileKernel]:
    """Return the kernels that a file's text and its headers define, the file's first."""
    inside = (FileKernel(one, header.name) for header in headers for one in signatures(header.code.text))
    return [*map(FileKernel, signatures(text)), *inside]


def named(kernels: Iterable[FileKernel], name: str) -> list[FileKernel]:
    """Return the kernels of that name, with or without its namespaces: the file's, or if it has none those of its
    headers.
    """
    found = [one for one in kernels if name in (one.signature.name, one.signature.name.rpartition("::")[2])]
    return own(found)


def own(kernels: Sequence[FileKernel]) -> list[FileKernel]:
    """Return those of the kernels that the file itself defines, or all if it defines none."""
    return [one for one in kernels if not one.header] or [*kernels]


def only_kernels(text: str, path: str, options: Sequence[str] = ()) -> list[Signature]:
    """Return the kernels that a file defines, or if it defines none those of the headers that it includes."""
    return signatures(text) or [one.signature for one in kernels_of(text, included(text, path, options))]
