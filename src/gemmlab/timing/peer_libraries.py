"""The libraries and packages of peers, as they are installed here."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from gemmlab.core.errors import PeerError

_WHEELS = {
    "mkl": (("mkl",), "libmkl_rt"),
    "onednn": (("onednn-cpu-gomp",), "libdnnl"),
    "cublas": (("nvidia-cublas", "nvidia-cublas-cu12"), "libcublas"),
    "cublaslt": (("nvidia-cublas", "nvidia-cublas-cu12"), "libcublasLt"),
}
_PACKAGES = {"torch": "torch", "cupy": "cupy", "cub": "cuda.compute", "numpy": "numpy"}
"""Peers that are Python packages -> the module to import."""


def find_library(name: str) -> str:
    """Return the path of `openblas`, `mkl`, `onednn`, `cublas` or `cublaslt` in an installed wheel.

    Raises `PeerError`, which names the package to install.
    """
    path = _openblas_path() if name == "openblas" else _wheels_path(*_WHEELS[name])
    if path is None:
        wheel = "scipy-openblas32" if name == "openblas" else _WHEELS[name][0][0]
        raise PeerError(f"{name} is not installed here: pip install {wheel} (or the extra gemmlab[peers])")
    return path


def peer_path(name: str) -> str | None:
    """Return the library's file, `None` for a Python package. Raises `PeerError` if it is not installed."""
    if name not in _PACKAGES:
        return find_library(name)
    try:
        found = find_spec(_PACKAGES[name])
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise PeerError(f"{name} is not installed here")
    return None


@cache
def _openblas_path() -> str | None:
    try:
        folder = Path(str(import_module("scipy_openblas32").get_lib_dir()))
    except ImportError:
        return None
    found = sorted(path for path in folder.glob("libscipy_openblas*") if path.suffix in (".so", ".dylib"))
    return str(found[0]) if found else None


def _wheels_path(wheels: tuple[str, ...], stem: str) -> str | None:
    return next((path for wheel in wheels if (path := _wheel_path(wheel, stem))), None)


@cache
def _wheel_path(wheel: str, stem: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        files = distribution(wheel).files or []
    except PackageNotFoundError:
        return None
    names = re.compile(re.escape(stem) + r"(\.so(\.\d+)*|(\.\d+)*\.dylib)\Z")
    found = sorted(str(Path(str(file.locate())).resolve()) for file in files if names.match(file.name))
    return next((path for path in found if Path(path).is_file()), None)
