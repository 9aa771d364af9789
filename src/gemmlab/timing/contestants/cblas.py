"""Call a shared library's float32 matrix product through ctypes, and read its version, core type and threads."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gemmlab.core.errors import PeerError

_ENTRIES: tuple[tuple[str, Any], ...] = (
    ("cblas_sgemm", ctypes.c_int32),
    ("scipy_cblas_sgemm", ctypes.c_int32),
    ("cblas_sgemm64_", ctypes.c_int64),
    ("scipy_cblas_sgemm64_", ctypes.c_int64),
    ("dnnl_sgemm", ctypes.c_int64),
)
_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_RUNTIMES = (
    ("libgomp", "OpenMP (GNU)"), ("libiomp5", "OpenMP (Intel)"), ("libomp", "OpenMP (LLVM)"), ("libtbb.", "TBB"),
)  # fmt: skip
_MKL_CODE = re.compile(r"libmkl_(avx\d+(?:_\w+)?|def|mc\d?)\.")
_DNNL_ISA = {
    0x1: "SSE4.1", 0x3: "AVX", 0x7: "AVX2", 0xF: "AVX2 VNNI", 0x1F: "AVX2 VNNI 2", 0x27: "AVX-512",
    0x67: "AVX-512 VNNI", 0xE7: "AVX-512 BF16", 0x1EF: "AVX-512 FP16", 0xFEF: "AVX-512 AMX", 0x1FEF: "AVX-512 AMX FP16",
}  # fmt: skip
"""Value of `dnnl_cpu_isa_t` in oneDNN 3 -> name of the instruction set."""


class _DnnlVersion(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int), ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint), ("gpu_runtime", ctypes.c_uint),
    )  # fmt: skip


class BlasLibrary:
    """The BLAS at `path`, loaded into this process. Raises `PeerError` if it does not load or has no matrix product."""

    def __init__(self, path: str) -> None:
        self.path = path
        for helper in sorted(Path(path).parent.glob("libiomp5.so")) if "mkl" in Path(path).name else ():
            ctypes.CDLL(str(helper), mode=ctypes.RTLD_GLOBAL)
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise PeerError(f"{Path(path).name} does not load: {error}") from error
        for symbol, integer in _ENTRIES:
            if hasattr(self._library, symbol):
                self._entry, self._integer, self.symbol = self._library[symbol], integer, symbol
                break
        else:
            raise PeerError(f"{Path(path).name} exports none of {', '.join(symbol for symbol, _ in _ENTRIES)}")
        self._entry.restype = None

    def prepare(self, scalars: Mapping[str, Any], addresses: Mapping[str, int]) -> Callable[[], object]:
        """Return a callable that computes C = alpha op(A) op(B) + beta C. Its arguments are converted here, once."""
        size, real = self._integer, ctypes.c_float
        m, n, k = (size(scalars[name]) for name in ("m", "n", "k"))
        lda, ldb, ldc = (size(max(1, scalars[name])) for name in ("lda", "ldb", "ldc"))
        a, b, c = (ctypes.c_void_p(addresses[name]) for name in ("a", "b", "c"))
        alpha, beta = real(scalars["alpha"]), real(scalars["beta"])
        trans_a, trans_b = bool(scalars.get("trans_a", 0)), bool(scalars.get("trans_b", 0))
        if self.symbol == "dnnl_sgemm":
            letters = [ctypes.c_char(b"T" if flag else b"N") for flag in (trans_a, trans_b)]
            return partial(self._entry, *letters, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
        flags = [ctypes.c_int(_TRANSPOSED if flag else _PLAIN) for flag in (trans_a, trans_b)]
        return partial(self._entry, ctypes.c_int(_ROW_MAJOR), *flags, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)

    def facts(self) -> dict[str, Any]:
        """Return library, version, core type, thread runtime, thread count and file; complete only after a first call.

        For a library other than OpenBLAS, MKL and oneDNN, `library` is the file's name, and only the thread runtime and
        the file are returned besides.
        """
        for describe in (self._openblas_facts, self._mkl_facts, self._dnnl_facts):
            found = describe()
            if found:
                return {**found, "file": Path(self.path).name}
        return {"library": Path(self.path).name, "thread_runtime": thread_runtime(), "file": Path(self.path).name}

    def _openblas_facts(self) -> dict[str, Any] | None:
        for prefix in ("scipy_", ""):
            for suffix in ("", "64_"):
                name = prefix + "openblas_get_{}" + suffix
                if hasattr(self._library, name.format("config")):
                    config = self._text(name.format("config"))
                    version = re.search(r"OpenBLAS\s+([\w.]+)", config)
                    parallel = self._number(name.format("parallel"))
                    kind = {0: "none", 1: "pthreads", 2: "OpenMP"}.get(-1 if parallel is None else parallel)
                    return {
                        "library": "OpenBLAS",
                        "version": version[1] if version else config,
                        "core_type": self._text(name.format("corename")),
                        "thread_runtime": thread_runtime() if kind == "OpenMP" else kind or thread_runtime(),
                        "threads": self._number(name.format("num_threads")),
                    }
        return None

    def _mkl_facts(self) -> dict[str, Any] | None:
        if not hasattr(self._library, "mkl_get_version_string"):
            return None
        text = ctypes.create_string_buffer(256)
        self._library.mkl_get_version_string(text, 256)
        version = re.search(r"Version\s+([\w.]+)", text.value.decode("ascii", "replace"))
        return {
            "library": "MKL",
            "version": version[1] if version else text.value.decode("ascii", "replace").strip(),
            "core_type": _mkl_core_type(),
            "thread_runtime": thread_runtime(),
            "threads": self._number("mkl_get_max_threads"),
        }

    def _dnnl_facts(self) -> dict[str, Any] | None:
        if not hasattr(self._library, "dnnl_version"):
            return None
        self._library.dnnl_version.restype = ctypes.POINTER(_DnnlVersion)
        version = self._library.dnnl_version().contents
        isa = self._number("dnnl_get_effective_cpu_isa")
        runtime = {1: "none", 2: thread_runtime(), 4: "TBB"}.get(version.cpu_runtime, "unknown")
        return {
            "library": "oneDNN",
            "version": f"{version.major}.{version.minor}.{version.patch}",
            "core_type": _DNNL_ISA.get(isa or 0, f"isa {isa:#x}" if isa else "unknown"),
            "thread_runtime": runtime,
            "threads": openmp_threads(),
        }

    def _text(self, symbol: str) -> str:
        if not hasattr(self._library, symbol):
            return "unknown"
        function = self._library[symbol]
        function.restype = ctypes.c_char_p
        return (function() or b"").decode("ascii", "replace").strip()

    def _number(self, symbol: str) -> int | None:
        return int(self._library[symbol]()) if hasattr(self._library, symbol) else None


def _loaded_files() -> list[str]:
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return sorted({os.path.basename(line.split(maxsplit=5)[5]) for line in maps.splitlines() if "/" in line})  # noqa: PTH119


def _mkl_core_type() -> str:
    found = [match[1] for name in _loaded_files() if (match := _MKL_CODE.match(name))]
    return ", ".join(found) or "unknown"


def thread_runtime() -> str:
    """Return the names of the OpenMP and TBB runtimes loaded into this process; `"unknown"` if none is found."""
    files = _loaded_files()
    found = [name for prefix, name in _RUNTIMES if any(file.startswith(prefix) for file in files)]
    return ", ".join(found) or "unknown"


def openmp_threads() -> int | None:
    """Return the thread count of the first loaded OpenMP runtime, by threadpoolctl; `None` if none is loaded."""
    from threadpoolctl import threadpool_info

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]
    return int(counts[0]) if counts else None
