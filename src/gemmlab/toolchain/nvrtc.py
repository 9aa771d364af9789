"""NVRTC, the CUDA compiler: its version, architectures, results and errors. It needs no driver and no GPU."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from typing import Any

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.toolchain import nvdisasm

_WHEELS = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}
_ARCH = re.compile(r"sm_(\d+)([af]?)")
_FIRST_WITH = {"": 0, "a": 90, "f": 100}


@cache
def compiler() -> str:
    """Return the compiler's name and version, such as `"NVRTC 13.5.37"`.

    The version is that of the installed wheel of cuda-bindings' CUDA version; only without one the library is loaded.
    Raises `NoCompilerError` without cuda-bindings, and if no compiler matches it.
    """
    bindings = _version("cuda-bindings")
    if bindings is None:
        raise NoCompilerError(f"no CUDA compiler: {nvdisasm.remedy()} (no GPU or driver is needed)")
    major = _major(bindings)
    wheels = {of: version for of, name in _WHEELS.items() if (version := _version(name)) and _major(version) == of}
    if major in wheels:
        return f"NVRTC {wheels[major]}"
    nvrtc = _load()
    if nvrtc is not None:
        return f"NVRTC {'.'.join(map(str, checked(nvrtc, nvrtc.nvrtcVersion())))}"
    if wheels:
        other = ", ".join(f"{_WHEELS[of]} {version}" for of, version in wheels.items())
        raise NoCompilerError(
            f"cuda-bindings {bindings} needs NVRTC of CUDA {major}, and here is {other}: "
            f"pip install 'gemmlab[cuda{major}]', or 'cuda-bindings=={max(wheels)}.*'"
        )
    raise NoCompilerError(f"cuda-bindings {bindings} is here without NVRTC: pip install 'gemmlab[cuda{major}]'")


@cache
def architectures() -> tuple[int, ...]:
    """Return the numbers of the architectures for which the installed compiler makes code: 75, 80, ...

    Raises `NoCompilerError`.
    """
    nvrtc = loaded()
    return tuple(int(number) for number in checked(nvrtc, nvrtc.nvrtcGetSupportedArchs()))


def check_architecture(target: str, asker: str) -> None:
    """Raise `CompileError` if the installed compiler cannot make code for `target`. The message begins with `asker`.

    Raises `NoCompilerError` without a compiler.
    """
    match = _ARCH.fullmatch(target)
    known = architectures()
    if match is None or int(match[1]) not in known or int(match[1]) < _FIRST_WITH[match[2]]:
        names = ", ".join(f"sm_{number}" for number in known)
        raise CompileError(
            f"{asker}: no code for {target!r}: {compiler()} knows {names}; "
            "from sm_90 on also those ending in a, from sm_100 on in f"
        )


def contents(nvrtc: Any, handle: Any, what: str) -> bytes:
    """Return a result of the program with this handle; `what` is `"CUBIN"`, `"PTX"` or `"ProgramLog"`."""
    size: int = checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(handle))
    data = bytes(size)
    checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(handle, data))
    return data


def text_of(nvrtc: Any, handle: Any, what: str) -> str:
    """Return a result of the program with this handle as text (see `contents`), without zeros at its end."""
    return contents(nvrtc, handle, what).decode("utf-8", "replace").rstrip("\0")


def loaded() -> Any:
    """Return the module `cuda.bindings.nvrtc` with its library loaded. Raises `NoCompilerError` if that fails."""
    compiler()
    nvrtc = _load()
    if nvrtc is None:
        raise NoCompilerError(f"{compiler()} is installed but cannot be loaded")
    return nvrtc


@cache
def _load() -> Any:
    """Return the module `cuda.bindings.nvrtc` with its library loaded; `None` if either is missing."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError):
        return None
    return nvrtc


def checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    """Return the result of a call of the binding without its status: one value, or a list.

    Raises `CompileError` if the status is an error.
    """
    status, *values = result
    if status:
        raise CompileError(f"NVRTC: {message(nvrtc, status)}")
    return values[0] if len(values) == 1 else values


def message(nvrtc: Any, status: Any) -> str:
    """Return the compiler's description of a status."""
    text: bytes = nvrtc.nvrtcGetErrorString(status)[1]
    return text.decode()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _major(version: str) -> int:
    return int(version.split(".", 1)[0])
