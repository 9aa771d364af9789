"""The text of a CUDA file for NVRTC, which compiles no host code: that is removed, and headers for it are empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemmlab.kernels.cuda_file.host_code import without_host_code
from gemmlab.kernels.cuda_file.tokens import pieces
from gemmlab.toolchain import cuda_headers
from gemmlab.toolchain.host_headers import HOST_HEADERS
from gemmlab.toolchain.include_path import include_path

LIKE_NVCC = ("-include=cuda_runtime.h",)
"""nvcc includes this header before every file, so kernels use `uint` or INFINITY without including it."""
_INCLUDE = re.compile(r'#\s*include\s*(?:<([^>\n]+)>|"([^"\n]+)")')
_OF_CUDA = re.compile(
    r"(?:cuda(?!_profiler)|curand_|cooperative_groups|mma\.h|cub/|thrust/|nv/|crt/|cute/|cutlass/|sm_\d|vector_|texture_"
    r"|surface_|math_constants|builtin_types|driver_types|library_types|nvfunctional)"
)
"""The beginnings of the names of CUDA's headers: if one is not found, the compiler must report it."""
_NOTHING = "// This header was not found; code for a GPU seldom needs one that is not CUDA's.\n"
_OF_TORCH = re.compile(r"(?:torch|ATen|c10)/")
_OF_HOST = re.compile(
    r"(?:torch|ATen|c10|pybind11)/.*|(?:cublas|cudnn|cusparse|cusolver|cufft|nccl|nvml|nvToolsExt|helper_|omp|cuda_profiler)"
    r"\w*\.h"
)
"""Headers for a host that files include in quotation marks, too; `helper_cuda.h` is of CUDA's samples."""
_OF_RANDOM = re.compile(r"curand\w*\.h")
"""cuRAND's headers stay unchanged: a macro of another header adds the qualifiers of their functions."""
_OF_TORCH_TOO = f"{_NOTHING}#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cmath>\n#include <algorithm>\n"
"""The text in place of a header of torch: it includes headers that torch's includes, as files often rely on that."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A CUDA file's text, and the headers that the compiler does not read from disk."""

    text: str
    headers: dict[str, str] = field(default_factory=dict)
    """Texts of headers by the name in `#include`: of the user's those that had host code, without it; cuRAND's
    unchanged; for headers that were not found a comment, for torch's with a few other includes.
    """


def device_code(text: str, path: str, options: Sequence[str]) -> DeviceCode:
    """Return the text and the headers that the compiler gets for a file; `path` is empty for text without a file.

    Host code is removed from the text, and from headers in the file's folder and in those of `options`. Headers in
    angle brackets that are in none of these folders are empty, unless they belong to the standard library or to CUDA;
    so are those in quotation marks that belong to torch and to CUDA's libraries for a host.
    """
    folders = [Path(folder) for folder in include_path(path, options).folders.values()]
    return DeviceCode(without_host_code(text), dict(_headers(text, folders, set())))


def with_headers(text: str, path: str, options: Sequence[str]) -> list[str]:
    """Return a file's text and those of the headers that it includes from its folder and those of `options`, directly
    or by way of others.
    """
    folders = [Path(folder) for folder in include_path(path, options).folders.values()]
    return [text, *_own_headers(text, folders, set())]


def _own_headers(text: str, folders: Sequence[Path], read: set[Path]) -> Iterator[str]:
    for piece in pieces(text):
        if match := _INCLUDE.match(piece.text) if piece.is_directive else None:
            name = (match[1] or match[2]).strip()
            file = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if file is not None and file not in read:
                read.add(file)
                inside = _text(file)
                yield inside
                yield from _own_headers(inside, [file.parent, *folders], read)


def _headers(text: str, folders: Sequence[Path], names: set[str]) -> Iterator[tuple[str, str]]:
    for piece in pieces(text):
        match = _INCLUDE.match(piece.text) if piece.is_directive else None
        if match is None:
            continue
        name = (match[1] or match[2]).strip()
        if name in names or name in HOST_HEADERS:
            continue
        if _OF_RANDOM.match(name):
            yield from _random(name, folders, names)
            continue
        names.add(name)
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is not None:
            inside = _text(file)
            of_device = without_host_code(inside)
            if of_device != inside:
                yield name, of_device
            yield from _headers(inside, [file.parent, *folders], names)
        elif (match[1] and not _OF_CUDA.match(name)) or _OF_HOST.fullmatch(name):
            yield name, _OF_TORCH_TOO if _OF_TORCH.match(name) else _NOTHING


def _random(name: str, folders: Sequence[Path], names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of a cuRAND header and of those that it includes, unless one of `folders` has it.

    Names are added to `names`, which are not yielded again.
    """
    names.add(name)
    folder = cuda_headers.random_folder()
    if folder is None or any((each / name).is_file() for each in folders) or not (folder / name).is_file():
        return
    text = _text(folder / name)
    yield name, text
    for match in filter(None, (_INCLUDE.match(piece.text) for piece in pieces(text) if piece.is_directive)):
        inside = (match[1] or match[2]).strip()
        if _OF_RANDOM.match(inside) and inside not in names:
            yield from _random(inside, folders, names)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        # The compiler will report its error.
        return ""
