"""cuBLAS through ctypes: its float32 matrix product of row-major operands on a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gemmlab.ops.sizes import LARGEST_EXTENT
from gemmlab.timing.contestants.contestant import UnsupportedError, Work
from gemmlab.timing.contestants.status_library import StatusLibrary

_PLAIN, _TRANSPOSED = 0, 1
_HOST_SCALARS = 0
_MATH_OF_THE_TYPE = 0
"""`CUBLAS_DEFAULT_MATH`: as many mantissa bits as the type has, so no TF32 for float32."""
_TF32_MATH = 3
"""`CUBLAS_TF32_TENSOR_OP_MATH`: inputs of float32 products may be rounded to TF32."""


class Cublas:
    """cuBLAS at `path` with a handle on `stream` in the current CUDA context. `tf32` lets it round inputs to TF32.

    Raises `PeerError` if it does not load or a call fails.
    """

    def __init__(self, path: str, stream: int, *, tf32: bool = False) -> None:
        self._tf32 = tf32
        for companion in sorted(Path(path).parent.glob("libcublasLt.so*")):
            ctypes.CDLL(str(companion), mode=ctypes.RTLD_GLOBAL)
        self._library = StatusLibrary(path)
        self._handle = ctypes.c_void_p()
        self._library.check("cublasCreate_v2", ctypes.byref(self._handle))
        self._library.check("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._library.check("cublasSetPointerMode_v2", self._handle, ctypes.c_int(_HOST_SCALARS))
        self._library.check("cublasSetMathMode", self._handle, ctypes.c_int(_TF32_MATH if tf32 else _MATH_OF_THE_TYPE))

    def prepare(self, scalars: Mapping[str, Any], addresses: Mapping[str, int]) -> Callable[[], None]:
        """Return a callable that enqueues C = alpha op(A) op(B) + beta C on the stream; arguments are converted once.

        cuBLAS matrices are column-major: to cuBLAS a row-major C is C^T, which is op(B)^T op(A)^T. So A and B change
        places, and each keeps its transpose flag.
        """
        return self._enqueuing("cublasSgemm_v2", scalars, addresses, strided=False)

    def prepare_batch(self, scalars: Mapping[str, Any], addresses: Mapping[str, int]) -> Callable[[], None]:
        """Return a callable as `prepare` does, for a batch: matrices of A, B and C are `stride_a`, `stride_b` and
        `stride_c` elements apart.
        """
        return self._enqueuing("cublasSgemmStridedBatched", scalars, addresses, strided=True)

    def _enqueuing(
        self, function: str, scalars: Mapping[str, Any], addresses: Mapping[str, int], *, strided: bool
    ) -> Callable[[], None]:  # fmt: skip
        m, n, k = (ctypes.c_int(scalars[name]) for name in ("m", "n", "k"))
        alpha, beta = (ctypes.c_float(scalars[name]) for name in ("alpha", "beta"))
        of_a, of_b = (ctypes.c_int(_TRANSPOSED if scalars.get(name, 0) else _PLAIN) for name in ("trans_a", "trans_b"))
        a, b, c = (
            (
                ctypes.c_void_p(addresses[name]),
                ctypes.c_int(max(1, scalars[f"ld{name}"])),
                *([ctypes.c_longlong(scalars[f"stride_{name}"])] if strided else []),
            )
            for name in ("a", "b", "c")
        )
        count = [ctypes.c_int(scalars["batch"])] if strided else []
        alpha_at, beta_at = ctypes.byref(alpha), ctypes.byref(beta)
        arguments = (self._handle, of_b, of_a, n, m, k, alpha_at, *b, *a, beta_at, *c, *count)
        return self._library.repeated(function, *arguments)

    def facts(self) -> dict[str, Any]:
        """Return library, version, file, and as `core_type` whether inputs may be rounded to TF32."""
        number = ctypes.c_int()
        self._library.check("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        version = version_text(number.value)
        math = "SGEMM, TF32" if self._tf32 else "SGEMM, no TF32"
        return {"library": "cuBLAS", "version": version, "core_type": math, "file": self._library.file}


def require_int32_extents(work: Work) -> None:
    """Raise `UnsupportedError` for an extent that does not fit the 32 bits that cuBLAS takes."""
    names = ("m", "n", "k", "lda", "ldb", "ldc", "batch")
    if any(work.scalars.get(name, 0) > LARGEST_EXTENT for name in names):
        raise UnsupportedError(f"an extent is above {LARGEST_EXTENT}")


def version_text(number: int) -> str:
    """Return a version number of cuBLAS as text: `"13.0.2"` for 130002, `"12.8.4"` for 120804."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
