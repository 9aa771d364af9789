"""The text of a CUDA file for NVRTC, which compiles no host code: that is removed, and headers for it are empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmlab.kernels.cuda_file.host_code import CodeText, without_host_code
from gemmlab.kernels.cuda_file.tokens import directives
from gemmlab.toolchain import cuda_headers
from gemmlab.toolchain.host_headers import HOST_HEADERS
from gemmlab.toolchain.include_path import IncludePath, include_path

LIKE_NVCC = ("-include=cuda_runtime.h",)
"""nvcc includes this header before every file, so kernels use `uint` or INFINITY without including it."""
_INCLUDE = re.compile(r'#\s*include\s*(?:<([^>\n]+)>|"([^"\n]+)")')
_OF_CUDA = re.compile(
    r"(?:cuda(?!_profiler)|curand_|cooperative_groups|mma\.h|cub/|thrust/|nv/|crt/|cute/|cutlass/|sm_\d|vector_|texture_"
    r"|surface_|math_constants|builtin_types|driver_types|library_types|nvfunctional)"
)
"""The beginnings of the names of CUDA's headers: if one is not found, the compiler must report it."""
_BUILT_IN = re.compile(
    r"(?:crt/)?(?:vector_functions|(?:cuda_)?(?:texture|surface)_types|(?:texture|surface)_(?:fetch_|indirect_)?functions"
    r"|device_(?:atomic|double)_functions|(?:common|math)_functions|sm_\d\d_(?:atomic_functions|intrinsics)"
    r"|(?:builtin|device)_types|host_(?:defines|config)|channel_descriptor)\.hp{0,2}"
)
"""Headers of CUDA's toolkit whose contents NVRTC declares itself."""
_OF_NVRTC = "__CUDACC_RTC__"
"""The macro by which headers that are written for NVRTC, too, tell it from nvcc."""
_NOTHING = "// This header was not found; code for a GPU seldom needs one that is not CUDA's.\n"
_OF_TORCH = re.compile(r"(?:torch|ATen|c10)/")
_OF_THRUST = re.compile(
    r"thrust/(?!iterator/|(?:addressof|advance|distance|functional|pair|tuple|version|zip_function)\.h)"
)
"""Headers of Thrust whose functions a host calls; device code can include the others."""
_OF_HOST = re.compile(
    r"(?:torch|ATen|c10|pybind11)/.*|(?:cublas|cudnn|cusparse|cusolver|cufft|nccl|nvml|nvToolsExt|helper_|omp|cuda_profiler"
    r"|curand\b|cudaTypedefs|cudaGL|(?:driver|library)_types|driver_functions|cuda_\w+_interop)\w*\.h"
    rf"|{_OF_THRUST.pattern}.*|cub/(?:device/.*|util_allocator\.cuh)"
)
"""Headers for a host that files include in quotation marks, too; `helper_cuda.h` is of CUDA's samples."""
_OF_HOST_ALONE = frozenset((
    "cublas_v2.h", "chrono", "fstream", "iomanip", "iostream", "random", "string", "vector",
))  # fmt: skip
"""Those of `HOST_HEADERS` whose substitute has nothing of what they declare."""
_OF_RANDOM = re.compile(r"curand\w*\.h")
"""cuRAND's headers stay unchanged: a macro of another header adds the qualifiers of their functions."""
_OF_TORCH_TOO = f"{_NOTHING}#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cmath>\n#include <algorithm>\n"
"""The text in place of a header of torch: it includes headers that torch's includes, as files often rely on that."""
_OF_THRUST_TOO = "namespace thrust {}\n"
"""The text in place of a header of Thrust, so that `using namespace thrust` names something."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A CUDA file's text, and the headers that the compiler does not read from disk."""

    text: str
    headers: dict[str, str] = field(default_factory=dict)
    """Texts of headers by the name in `#include`: of the user's those that had host code, without it; cuRAND's
    unchanged; for headers that were not found a comment, for torch's with a few other includes.
    """


@dataclass(frozen=True, slots=True)
class Header:
    """A header that was found on disk."""

    name: str
    """The name in `#include`."""
    path: Path
    code: CodeText


def device_code(text: str, path: str, options: Sequence[str], named: str = "") -> DeviceCode:
    """Return the text and the headers that the compiler gets for a file; `path` is empty for text without a file, and
    `named` is the instance that is compiled.

    Host code is removed from the text, and from headers in the file's folder and in those of `options`. Headers in
    angle brackets that are in none of these folders are empty, unless they belong to the standard library or to CUDA;
    so are those that a host alone can use: in quotation marks, too, of torch and of CUDA's libraries.
    """
    search = _Search(include_path(path, options))
    whole = CodeText(text, search.follow(text, search.folders))
    left, *inside = without_host_code([whole, *search.codes()], named)
    changed = {
        header.name: new for header, new in zip(search.found, inside, strict=True) if new != header.code.text
    }  # fmt: skip
    return DeviceCode(left, {**search.substitutes, **changed})


def included(text: str, path: str, options: Sequence[str]) -> list[Header]:
    """Return the headers that a file's text includes, directly or indirectly, if they are in the file's folder or in
    those of `options`; `path` is empty for text without a file.
    """
    search = _Search(include_path(path, options))
    search.follow(text, search.folders)
    return search.found


class _Search:
    """The search for the headers of one file."""

    def __init__(self, path: IncludePath) -> None:
        self.folders = [Path(folder) for folder in path.folders.values()]
        self.found: list[Header] = []
        self.substitutes: dict[str, str] = {}
        """Texts of headers that are not read as they are, by name."""
        self._stated = [Path(folder) for folder in path.named]
        self._libraries: set[Path] = set()
        """The stated folders whose headers are written for NVRTC, too."""
        self._names: set[str] = set()
        self._of_host: set[str] = set()

    def codes(self) -> Iterator[CodeText]:
        """Yield the texts of the headers that were found."""
        for header in self.found:
            foreign = any(header.path.is_relative_to(folder) for folder in self._libraries)
            yield replace(header.code, foreign=foreign)

    def follow(self, text: str, folders: Sequence[Path]) -> bool:
        """Add the headers that a text includes, and return whether a host alone has one of them; `folders` are
        searched in their order.
        """
        of_host = False
        for directive in directives(text):
            match = _INCLUDE.match(directive.text)
            if match is not None:
                name = (match[1] or match[2]).strip()
                of_host |= self._add(name, folders, angles=match[1] is not None)
        return of_host

    def _add(self, name: str, folders: Sequence[Path], *, angles: bool) -> bool:
        if name in self._names or name in HOST_HEADERS:
            return name in self._of_host or name in _OF_HOST_ALONE
        self._names.add(name)
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if _OF_RANDOM.match(name):
            if file is not None or self._random(name):
                return False
        elif file is not None:
            inside, place = _text(file), len(self.found)
            of_host = self.follow(inside, [file.parent, *folders])
            if _OF_NVRTC in inside:
                self._libraries |= {folder for folder in self._stated if file.is_relative_to(folder)}
            self.found.insert(place, Header(name, file, CodeText(inside, of_host)))
            return False
        if _BUILT_IN.fullmatch(name):
            self.substitutes[name] = _NOTHING
        elif _OF_HOST.fullmatch(name) or (angles and not _OF_CUDA.match(name)):
            special = _OF_TORCH_TOO if _OF_TORCH.match(name) else _OF_THRUST_TOO if _OF_THRUST.match(name) else ""
            self.substitutes[name] = special or _NOTHING
            self._of_host.add(name)
        return name in self._of_host

    def _random(self, name: str) -> bool:
        """Add cuRAND's header, and those that it includes, as they are; return whether it was found."""
        folder = cuda_headers.random_folder()
        if folder is None or not (folder / name).is_file():
            return False
        self.substitutes[name] = text = _text(folder / name)
        for match in filter(None, (_INCLUDE.match(directive.text) for directive in directives(text))):
            inside = (match[1] or match[2]).strip()
            if _OF_RANDOM.match(inside) and inside not in self._names:
                self._names.add(inside)
                self._random(inside)
        return True


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        # The compiler will report its error.
        return ""
