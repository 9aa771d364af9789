"""gemmlab: climb from a naive matrix multiplication to the hardware's limit, then use the result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemmlab.api import explain_choice, gemm, workspace_bytes
from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceError,
    GemmlabError,
    NoCompilerError,
    PeerError,
    RecordError,
    TimeLimitError,
    UsageError,
    WrongResultError,
)
from gemmlab.core.memory_room import require_room_to_import
from gemmlab.core.version import __version__
from gemmlab.groups import gemm_group
from gemmlab.packs import Packed, pack
from gemmlab.sums import sum  # noqa: A004 - as NumPy calls it

if TYPE_CHECKING:
    from gemmlab import blas
    from gemmlab.blas import sgemm
    from gemmlab.launching import TensorMap, launch

__all__ = [
    "ArgumentTypeError",
    "CompileError",
    "DeviceError",
    "GemmlabError",
    "NoCompilerError",
    "Packed",
    "PeerError",
    "RecordError",
    "TensorMap",
    "TimeLimitError",
    "UsageError",
    "WrongResultError",
    "__version__",
    "blas",
    "explain_choice",
    "gemm",
    "gemm_group",
    "launch",
    "pack",
    "sgemm",
    "sum",
    "workspace_bytes",
]


def __getattr__(name: str) -> Any:
    # What runs CUDA kernels is loaded by who launches one.
    if name in {"launch", "TensorMap"}:
        require_room_to_import("gemmlab.launching")
        from gemmlab.launching import TensorMap, launch

        return launch if name == "launch" else TensorMap
    if name in {"blas", "sgemm"}:
        require_room_to_import("gemmlab.blas")
        found = import_module("gemmlab.blas")
        return found if name == "blas" else found.sgemm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
