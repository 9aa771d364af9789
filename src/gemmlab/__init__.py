"""gemmlab: climb from a naive matrix multiplication to the hardware's limit, then use the result."""

from __future__ import annotations

from gemmlab.api import gemm
from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceError,
    GemmlabError,
    PeerError,
    RecordError,
    UsageError,
    WrongResultError,
)

__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError",
    "CompileError",
    "DeviceError",
    "GemmlabError",
    "PeerError",
    "RecordError",
    "UsageError",
    "WrongResultError",
    "__version__",
    "gemm",
]
