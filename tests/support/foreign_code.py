"""Processors and systems that are not here, and the compiled product for them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from llvmlite import binding

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.entry import emit_c_entry, emit_python_entry
from gemmlab.codegen.microkernel import Tile
from gemmlab.codegen.product import emit_product, product_workspace_bytes
from gemmlab.codegen.stack_entry import emit_python_stack
from gemmlab.codegen.stacks import emit_stack
from gemmlab.ir.compile import compile_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import Target, _triple
from gemmlab.toolchain.elf import read_elf

COFF = "x86_64-pc-windows-msvc"
"""Windows' own kind of object, which other linkers take; `_triple` makes it the one that is linked into a process."""
TARGETS = {
    "Linux, Arm": Target(4, 32, "aarch64-unknown-linux-gnu", "generic", "+neon", fused=True),
    "macOS, Arm": Target(4, 32, "arm64-apple-darwin23.0.0", "apple-m1", "", fused=True),
    "macOS, x86-64": Target(8, 16, "x86_64-apple-darwin23.0.0", "haswell", "", fused=True),
    "Windows, AVX-512": Target(16, 32, _triple(COFF), "skylake-avx512", "", fused=True),
    "Windows, SSE": Target(4, 16, _triple(COFF), "x86-64", "", fused=False),
}


def _sizes(target: Target) -> tuple[Tile, Blocks]:
    """Of a product that makes little code, and has edges and several blocks in small matrices."""
    return Tile(2, 1, target.lanes), Blocks(mc=8, kc=16, nc=4 * target.lanes)


def workspace_bytes(target: Target) -> int:
    return product_workspace_bytes(*_sizes(target))


def compile_foreign(text: str, target: Target, level: int = 2) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return compile_object(text, target, level=level)


def product(target: Target) -> str:
    """The whole product with its entries, pool and packing: `c_entry` and `python_entry`."""
    module = Module(target)
    whole = emit_product(module, *_sizes(target))
    stack = emit_stack(module, _sizes(target)[1], whole)
    emit_c_entry(module, whole, "c_entry")
    emit_python_entry(module, whole, emit_python_stack(module, stack, "python_stack"), "python_entry")
    return module.text()


def wanted(code: bytes) -> set[str]:
    """The symbols that an object lacks."""
    if code.startswith(b"\x7fELF"):
        return {symbol.name for symbol in read_elf(code, "object").symbols if not symbol.section and symbol.name}
    return set(_wanted_macho(code))


def _wanted_macho(code: bytes) -> Iterator[str]:
    (commands,) = struct.unpack_from("<I", code, 16)
    at = 32
    for _ in range(commands):
        kind, nbytes = struct.unpack_from("<II", code, at)
        if kind == 2:  # LC_SYMTAB
            symbols, count, strings, _ = struct.unpack_from("<4I", code, at + 8)
            for place in range(symbols, symbols + 16 * count, 16):
                name, sort = struct.unpack_from("<IB", code, place)
                if sort & 0x0F == 1:  # external and undefined; C's names have an underscore in front
                    yield code[strings + name : code.index(b"\0", strings + name)].decode().removeprefix("_")
        at += nbytes
