"""The kernel `amx_bf16x6` on a processor with AVX-512 but without AMX: its own code, with simulated instructions.

Compiled code calls `tile_instructions` where it has AMX's. Tests before and after are on a processor without tiles: all
that depends on whether there are tiles, or holds such code, is replaced for the while or emptied after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from gemmlab import api
from gemmlab.codegen import runtime
from gemmlab.codegen.runtime import Runtime
from gemmlab.core.hardware import cpu_info
from gemmlab.devices import cpu, cpu_tiles
from gemmlab.devices.cpu_tiles import tiles_refusal
from gemmlab.dispatch import cpu_forced
from gemmlab.dispatch.cpu_gemm import load_product
from gemmlab.ir import build
from gemmlab.ir.build import compiler
from gemmlab.ir.compile import LoadedObject, compile_object, load_object
from gemmlab.ir.target import Target
from support.tile_instructions import renamed, tile_instructions

_CACHES = (tiles_refusal, load_product, cpu_forced._product)


@contextmanager
def simulated_tiles() -> Iterator[str]:
    """Simulate AMX while the `with` block runs.

    Yield the reason why kernels with tiles do not run here even so; empty if they do.
    """
    info = cpu_info()
    info = replace(info, features=info.features | set(cpu_tiles.FEATURES))
    willing = SimpleNamespace(CDLL=lambda *_args, **_options: SimpleNamespace(syscall=lambda *_numbers: 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_tiles, "cpu_info", lambda: info)
        patch.setattr(cpu_tiles, "ctypes", willing)
        patch.setattr(build, "compile_object", _compile)
        # The compiler's name is in the keys of code on disk.
        patch.setattr(build, "compiler", lambda: f"{compiler()}, simulated tiles")
        patch.setattr(cpu, "load_object", _link)
        # Linked code has the address of its pool, whose workspaces are larger if there are tiles.
        patch.setattr(runtime, "_runtime", _pool())
        patch.setattr(cpu, "_load", _linked_once())
        patch.setattr(api, "_products", {})
        patch.setattr(api, "_entry", None)
        patch.setattr(api, "_entries", {})
        try:
            _clear()
            yield tiles_refusal()
        finally:
            _clear()


def _clear() -> None:
    for cached in _CACHES:
        cached.cache_clear()


@cache
def _pool() -> Runtime:
    return Runtime()


@cache
def _linked_once() -> object:
    """Return the function that links code once for each digest, with a memory of its own."""
    return cache(cpu._load.__wrapped__)


def _compile(text: str, target: Target, *, vectorize: bool = False, level: int = 2) -> bytes:
    return compile_object(renamed(text), target, vectorize=vectorize, level=level)


def _link(code: bytes, symbols: Sequence[str], imports: Mapping[str, int] | None = None) -> LoadedObject:
    return load_object(code, symbols, {**(imports or {}), **tile_instructions()})
