"""A launch described by options of the command line, with random arrays: of a cubin, of PTX, or of a kernel whose
arguments are listed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.launching import Launched

CODE = (".cubin", ".ptx")
"""Suffixes of files that can only be launched, because they state no operation."""
_ARRAY = re.compile(r"(float(?:16|32|64)|u?int(?:8|16|32|64))\[([0-9x ]+)\]")
_MOST_ELEMENTS = 1 << 28
_EXAMPLE = '--args "1024, 2.0, float32[1024], int32[64x64]"'


def is_launch(kernels: Sequence[str], args: str | None) -> bool:
    """Return whether a command line describes a launch: a file is a cubin or PTX, or `args` has an array (`[`)."""
    return any(name.endswith(CODE) for name in kernels) or "[" in (args or "")


def launched(
    file: str, kernel: str | None, grid: str | None, threads: str | None, args: str | None, smem_bytes: str | None,
    arch: str, gpu: str, options: Sequence[str], values: Mapping[str, Any] = MappingProxyType({}),
) -> Launched:  # fmt: skip
    """Launch the kernel `kernel` of `file` on the emulator with the arguments `args`, as `arguments` reads them.

    `kernel` may be `None` for a cubin or PTX with one kernel. Raises `UsageError` for a missing option, and as `launch`
    does.
    """
    from gemmlab.analysis.subject import machine
    from gemmlab.launching import launch

    kernel = kernel or _only_kernel(file)
    lacking = [f"--{name}" for name, value in (("kernel", kernel), ("grid", grid), ("threads", threads),
                                               ("args", args)) if value is None]  # fmt: skip
    if lacking:
        raise UsageError(f"{file}: to explain a launch, state {', '.join(lacking)}, with arrays as in {_EXAMPLE}")
    # A cubin states its own architecture.
    target = "" if file.endswith(".cubin") else machine(arch, gpu)[0]
    return launch(
        file, kernel or "", _extents("grid", grid or ""), _extents("threads", threads or ""),
        arguments(args or "", values),
        device=f"emulated:{target}" if target else "emulated", smem_bytes=_whole("smem-bytes", smem_bytes or "0"),
        options=options,
    )  # fmt: skip


def _only_kernel(file: str) -> str | None:
    """Return the name of the only kernel of a cubin or of PTX; `None` if it has several, and for any other file."""
    from gemmlab.launching.source import CudaText, read_source

    source = read_source(file) if file.endswith(CODE) else None
    names = [] if source is None or isinstance(source, CudaText) else source.kernels
    return names[0] if len(names) == 1 else None


def arguments(text: str, values: Mapping[str, Any] = MappingProxyType({})) -> list[Any]:
    """Return the arguments in a list separated by commas: numbers, `null` (`None`), arrays, and names in `values`.

    `float32[64x64]` is an array of random floats from -1 to 1, of an integer type one of random zeros and ones; the
    random numbers are the same in each call. Raises `UsageError` that names a part that is none of these, or an array
    with too many elements.
    """
    import numpy as np

    rng, found = np.random.default_rng(0), list[Any]()
    for part in filter(None, (part.strip() for part in text.split(","))):
        if match := _ARRAY.fullmatch(part):
            kind, shape = np.dtype(match[1]), [_whole("args", extent) for extent in match[2].split("x")]
            if math.prod(shape) > _MOST_ELEMENTS:
                raise UsageError(f"--args: {part} has more than {_MOST_ELEMENTS} elements")
            # Small integers are indices that most arrays have.
            drawn = rng.random(shape) * 2 - 1 if kind.kind == "f" else rng.integers(0, 2, shape)
            found.append(drawn.astype(kind))
        elif part == "null":
            found.append(None)
        elif part in values:
            found.append(values[part])
        else:
            try:
                found.append(float(part) if re.search(r"[.en]", part) else int(part))
            except ValueError:
                raise UsageError(f"--args: {part!r} is no number, no null and no array, as in {_EXAMPLE}") from None
    return found


def _extents(name: str, text: str) -> list[int]:
    return [_whole(name, part) for part in text.split(",")]


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text.strip()):
        raise UsageError(f"--{name}: {text.strip()!r} is not a whole number, which a launch needs")
    return int(text)
