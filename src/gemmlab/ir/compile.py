"""Compile LLVM IR to relocatable object code for a target, and link object code into callable addresses."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gemmlab.core.errors import CompileError
from gemmlab.core.memory_room import require_room
from gemmlab.ir import llvm
from gemmlab.ir.target import Target, host_target

_COMPILING_BYTES, _COMPILING = 32 << 20, 12
"""Bytes that must be available for compiling: `_COMPILING_BYTES`, and `_COMPILING` for each character of the IR.

Compiling took at most half of that when it was measured.
"""
_LINKING_BYTES, _LINKING = 8 << 20, 4
"""Bytes that must be available for linking: `_LINKING_BYTES`, and `_LINKING` for each byte of object code."""


@cache
def _initialize() -> None:
    binding = llvm.binding()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    # The code contains assembly: on Arm some instructions cannot be expressed otherwise.
    binding.initialize_native_asmparser()


def _machine(target: Target) -> Any:
    _initialize()
    # Code for the older linker (see `_jit`) names every address in full.
    reloc, model = ("static", "large") if target.windows else ("pic", "default")
    return (
        llvm.binding()
        .Target.from_triple(target.triple)
        .create_target_machine(cpu=target.cpu, features=target.features, opt=3, reloc=reloc, codemodel=model)
    )


def _optimised(text: str, target: Target, *, vectorize: bool, level: int) -> tuple[Any, Any]:
    binding = llvm.binding()
    machine = _machine(target)
    try:
        module = binding.parse_assembly(text)
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"generated LLVM IR was refused: {error}") from error
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectorize
    options.slp_vectorization = vectorize
    options.loop_unrolling = vectorize
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine, module


def compile_object(text: str, target: Target, *, vectorize: bool = False, level: int = 2) -> bytes:
    """Return the object code of a module in LLVM IR.

    `vectorize` lets LLVM vectorize and unroll loops; `level` is LLVM's optimisation level. Raises `CompileError` when
    the IR is malformed, `MemoryError` if there is less memory than LLVM may need.
    """
    require_room(_COMPILING_BYTES + _COMPILING * len(text), "compile")
    machine, module = _optimised(text, target, vectorize=vectorize, level=level)
    return bytes(machine.emit_object(module))


@cache
def _jit() -> Any:
    _initialize()
    # LLVM's older linker allocates memory for code and for constants separately, and aborts the process if they lie
    # too far apart for a 32-bit reference. That happens once much of the address space is taken, as by CUDA. The newer
    # linker allocates an object as one piece; llvmlite does not offer it on Windows.
    return llvm.binding().create_lljit_compiler(use_jit_link=not host_target().windows)


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """Object code linked into this process, and the addresses of its symbols. It is never unloaded, because threads may
    still run in it.
    """

    name: str
    addresses: Mapping[str, int]


_numbers = itertools.count(1)
_linking = threading.Lock()


def load_object(code: bytes, symbols: Sequence[str], imports: Mapping[str, int] | None = None) -> LoadedObject:
    """Link object code into this process and look up `symbols`.

    `imports` gives the addresses of symbols that the code uses and the process does not define. Raises `CompileError`
    when a symbol is missing or the code is not an object file, `MemoryError`.
    """
    require_room(_LINKING_BYTES + _LINKING * len(code), "link compiled code")
    name = f"gemmlab{next(_numbers)}"
    builder = llvm.binding().JITLibraryBuilder().add_object_img(code).add_current_process()
    for label, address in (imports or {}).items():
        builder.import_symbol(label, address)
    for symbol in symbols:
        builder.export_symbol(symbol)
    with _linking:
        try:
            tracker = builder.link(_jit(), name)
            addresses = {symbol: int(tracker[symbol]) for symbol in symbols}
        except RuntimeError as error:
            raise CompileError(f"object code could not be linked: {error}") from error
        tracker.detach()
    return LoadedObject(name, addresses)
