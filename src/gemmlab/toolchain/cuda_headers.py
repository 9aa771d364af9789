"""Find CUDA's headers (`cuda_fp16.h`, `mma.h` and similar ones): in the compiler itself, or in an installed toolkit."""

from __future__ import annotations

import re
import tempfile
import warnings
from functools import cache
from pathlib import Path

from gemmlab.toolchain import private_files
from gemmlab.toolchain.cache import private_folder
from gemmlab.toolchain.include_path import absolute

_FIRST_WITH_HEADERS = (13, 3)
_VERSION = re.compile(r"#\s*define\s+CUDART_VERSION\s+(\d+)")


def options(compiler: str) -> list[str]:
    """Return compiler options with which CUDA's headers are found; `compiler` is a name such as `"NVRTC 13.5.37"`.

    A compiler that contains the headers unpacks them, once, into the cache's folder, or into a temporary one if that
    cannot be trusted or written to. Without any headers there are no options.
    """
    if brings_headers(compiler):
        return [f"--use-bundled-headers={_unpacked(compiler)}"]
    return [f"-I{folder}" for folder in _toolkit()]


def folders(compiler: str) -> list[str]:
    """Return the folders in which the compiler finds CUDA's headers by the result of `options`; none without any."""
    found = [_unpacked(compiler)] if brings_headers(compiler) else _toolkit()
    return [absolute(f"{folder}{below}") for folder in found for below in ("", "/cccl")]


@cache
def version(compiler: str) -> str:
    """Return the version of CUDA's headers that the compiler finds: its own name if it contains them, else the
    toolkit's `CUDART_VERSION`; `"none"` without any.
    """
    if brings_headers(compiler):
        return compiler
    for folder in _toolkit():
        file = folder / "cuda_runtime_api.h"
        if file.is_file() and (match := _VERSION.search(file.read_text(encoding="utf-8", errors="replace"))):
            return match[1]
    return "none"


def brings_headers(compiler: str) -> bool:
    """Return whether this NVRTC contains CUDA's headers."""
    return tuple(map(int, compiler.rsplit(maxsplit=1)[-1].split(".")[:2])) >= _FIRST_WITH_HEADERS


def _unpacked(compiler: str) -> Path:
    folder = private_folder(f"cuda-headers-{compiler.rsplit(maxsplit=1)[-1]}")
    return folder if folder is not None and _trusted(folder) else Path(_temporary().name)


@cache
def _trusted(folder: Path) -> bool:
    """Return whether no other user can have written a header in the folder; warn if not.

    The result is cached, because the check takes some milliseconds.
    """
    try:
        private_files.check_tree(folder)
    except private_files.UntrustedError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
        return False
    return True


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gemmlab-cuda-headers-")


@cache
def random_folder() -> Path | None:
    """Return the folder of cuRAND's headers, of a toolkit or of the package `nvidia-curand`.

    `None` without either, or without the package `cuda-pathfinder`.
    """
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return None
    found = find_nvidia_header_directory("curand")
    return Path(found) if found else None


@cache
def _toolkit() -> tuple[Path, ...]:
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    found = (find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(dict.fromkeys(Path(folder) for folder in found if folder))
