"""The BLAS entries as machine code: compiled once for this processor, linked into the process at first use."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gemmlab.codegen.blas.entry_points import C_SYMBOL, FORTRAN_SYMBOL, emit_blas
from gemmlab.codegen.blas.error_handlers import ABSENT, WEAK_SYMBOLS
from gemmlab.codegen.microkernel import best_tile
from gemmlab.codegen.product import emit_product, product_workspace_bytes, usual_serial_work
from gemmlab.core.errors import UsageError
from gemmlab.core.fork_lock import fork_lock
from gemmlab.core.hardware import cpu_info, physical_cores
from gemmlab.core.program import Artifact, Program
from gemmlab.core.sources import Sources
from gemmlab.ir.build import build, generator_fingerprint
from gemmlab.ir.compile import load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target, host_target
from gemmlab.kernels.cpu_kernel import blocks_for

SET_THREADS, SET_XERBLA = "gemmlab_blas_set_threads", "gemmlab_blas_set_xerbla"
SYMBOLS = (FORTRAN_SYMBOL, C_SYMBOL, SET_THREADS, SET_XERBLA)

_SOURCES = Sources([Path(__file__)])
_lock = fork_lock()
_addresses: Mapping[str, int] | None = None


def compiled(lanes: int | None = None) -> Artifact:
    """Return the entries as object code that needs nothing but the C library; `lanes` is the number of float32 in a
    vector, by default that of this processor's widest.

    Raises `CompileError`, `DeviceError`, and `UsageError` on Windows, for whose threads they are not written.
    """
    if sys.platform == "win32":
        raise UsageError("native BLAS entries are for POSIX systems; gemmlab.blas.sgemm works on Windows too")
    target = host_target(lanes)
    return build(_program(target), target)


def addresses() -> Mapping[str, int]:
    """Return the addresses of the entries in this process, by symbol. The first call compiles and links them.

    Unless the environment sets GEMMLAB_NUM_THREADS, it also sets the number of threads to that of the physical cores.
    """
    global _addresses
    with _lock:
        if _addresses is None:
            found = load_object(compiled().code, SYMBOLS, _handlers()).addresses
            if not os.environ.get("GEMMLAB_NUM_THREADS"):
                ctypes.CFUNCTYPE(None, ctypes.c_int)(found[SET_THREADS])(physical_cores())
            _addresses = found
        return _addresses


class _Owner(ctypes.Structure):
    """The file and symbol of an address, as `dladdr` returns them (`Dl_info`)."""

    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("start", ctypes.c_void_p),
    )  # fmt: skip


def _handlers() -> dict[str, int]:
    """Return addresses of the error handlers that the program defines, `ABSENT` for those that it does not.

    MKL puts its own ones among the program's symbols when it is first used. They are left out: they are not the
    program's, and the arguments of its `cblas_xerbla` are others than those of the reference BLAS.
    """
    program = ctypes.CDLL(None)
    found: dict[str, int] = {}
    for name in WEAK_SYMBOLS:
        try:
            found[name] = ctypes.addressof(ctypes.c_char.in_dll(program, name))
        except ValueError:
            found[name] = ABSENT
        if found[name] != ABSENT:
            owner = _Owner()
            program.dladdr(ctypes.c_void_p(found[name]), ctypes.byref(owner))
            if os.path.basename(owner.file or b"").startswith(b"libmkl"):  # noqa: PTH119 - a path in bytes
                found[name] = ABSENT
    return found


def _program(target: Target) -> Program:
    tile, blocks, serial_work = best_tile(target), blocks_for(target.lanes), usual_serial_work(target)
    info = cpu_info()
    cpus_a_core = max(1, info.logical_cpus // max(1, info.physical_cores))
    workspace_bytes = product_workspace_bytes(tile, blocks)

    def text() -> str:
        module = Module(target)
        emit_blas(module, emit_product(module, tile, blocks, serial_work), workspace_bytes, cpus_a_core)
        return module.text()

    own, generator = _SOURCES.fingerprint(), generator_fingerprint()
    facts = repr((own, generator, tile, blocks, serial_work, cpus_a_core))
    return Program(
        kernel="blas",
        language="llvm",
        target=target.name,
        entry=FORTRAN_SYMBOL,
        fingerprint=hashlib.sha256(facts.encode()).hexdigest() if own and generator else "",
        emit=text,
        exports=SYMBOLS[1:],
        resources={"workspace_bytes": workspace_bytes},
    )
