"""gemmlab: climb from a naive matrix multiplication to the hardware's limit, then use the result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemmlab.api import gemm
from gemmlab.choices import explain_choice, workspace_bytes
from gemmlab.core.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceError,
    GemmlabError,
    NoCompilerError,
    PeerError,
    ProfilerError,
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
    from gemmlab.instruments.benching import bench
    from gemmlab.instruments.checking import check
    from gemmlab.instruments.climbing import climb
    from gemmlab.instruments.comparing import compare
    from gemmlab.instruments.explaining import explain
    from gemmlab.instruments.profiling import profile
    from gemmlab.instruments.tuning_call import tune
    from gemmlab.launching import TensorMap, launch
    from gemmlab.ops.operation import Array, Operation

__all__ = [
    "ArgumentTypeError",
    "Array",
    "CompileError",
    "DeviceError",
    "GemmlabError",
    "NoCompilerError",
    "Operation",
    "Packed",
    "PeerError",
    "ProfilerError",
    "RecordError",
    "TensorMap",
    "TimeLimitError",
    "UsageError",
    "WrongResultError",
    "__version__",
    "bench",
    "blas",
    "check",
    "climb",
    "compare",
    "explain",
    "explain_choice",
    "gemm",
    "gemm_group",
    "launch",
    "pack",
    "profile",
    "sgemm",
    "sum",
    "tune",
    "workspace_bytes",
]


_PLACES = {
    "Array": "gemmlab.ops.operation",
    "Operation": "gemmlab.ops.operation",
    "TensorMap": "gemmlab.launching",
    "bench": "gemmlab.instruments.benching",
    "blas": "gemmlab",
    "check": "gemmlab.instruments.checking",
    "climb": "gemmlab.instruments.climbing",
    "compare": "gemmlab.instruments.comparing",
    "explain": "gemmlab.instruments.explaining",
    "launch": "gemmlab.launching",
    "load_ipython_extension": "gemmlab.notebook",
    "profile": "gemmlab.instruments.profiling",
    "sgemm": "gemmlab.blas",
    "tune": "gemmlab.instruments.tuning_call",
}
"""Name -> its module, for names that are imported by their first use."""


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{place}.{name}" if place == __name__ else place
    require_room_to_import(module)
    found = import_module(module)
    return found if place == __name__ else getattr(found, name)


def __dir__() -> list[str]:
    return list(__all__)
