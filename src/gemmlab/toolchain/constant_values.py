"""Write values of `__constant__` variables, which a CUDA program would set before a launch, into the cubin itself.

A cubin has the initial bytes of its constant banks. In a copy with other bytes the variables have other values, on a
GPU and on the emulator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact
from gemmlab.core.words import nearest
from gemmlab.toolchain.cubin import Cubin, Variable, digest, read_cubin

_PART = re.compile(r"[NL]*(\d+)")


def with_constants(artifact: Artifact, values: Mapping[str, npt.NDArray[Any]]) -> Artifact:
    """Return a copy of an artifact in whose cubin `__constant__` variables hold `values`, arrays by the variables'
    names.

    Names are without namespaces. Raises `UsageError` for a name that no `__constant__` variable of the code has, and
    for an array whose bytes are not as many as the variable's.
    """
    cubin = read_cubin(artifact.code, artifact.kernel)
    code = bytearray(artifact.code)
    for name, value in values.items():
        variable = _found(artifact.kernel, cubin, name)
        data = np.ascontiguousarray(value).tobytes()
        if len(data) != variable.size:
            what = f"{np.asarray(value).dtype} of shape {np.asarray(value).shape}, {len(data)} bytes"
            raise UsageError(f"{artifact.kernel}: constant {name} has {variable.size} bytes; it was given {what}")
        start = cubin.sections[variable.section].start + variable.offset
        code[start : start + len(data)] = data
    patched = bytes(code)
    return replace(artifact, code=patched, digest=digest(patched, artifact.kernel))


def zero_constants(artifact: Artifact) -> list[str]:
    """Return the names of the `__constant__` variables of a cubin that hold only zeros, as those without a value do."""
    cubin = read_cubin(artifact.code, artifact.kernel)
    found = []
    for name, variable in _constants(cubin).items():
        start = cubin.sections[variable.section].start + variable.offset
        if not any(artifact.code[start : start + variable.size]):
            found.append(name)
    return found


def _source_name(symbol: str) -> str:
    """Return the name of a symbol in the source, without namespaces: `taps` for `_ZN4mine4tapsE` and `_ZL4taps`."""
    found, at = symbol, 2
    while symbol.startswith("_Z") and (part := _PART.match(symbol, at)) is not None:
        end = part.end() + int(part[1])
        found, at = symbol[part.end() : end], end
    return found


def _constants(cubin: Cubin) -> dict[str, Variable]:
    """Return the `__constant__` variables of a cubin by their names in the source."""
    return {_source_name(symbol): variable for symbol, variable in cubin.symbols.items()
            if variable.section.startswith(".nv.constant")}  # fmt: skip


def _found(kernel: str, cubin: Cubin, name: str) -> Variable:
    known = _constants(cubin)
    if name in known:
        return known[name]
    if any(_source_name(symbol) == name for symbol in cubin.symbols):
        raise UsageError(f"{kernel}: {name} is a __device__ variable; only __constant__ ones can be given")
    what = nearest(name, known, most=1) if known else "the code has none that it uses"
    raise UsageError(f"{kernel}: no __constant__ variable {name!r}; {what}")
