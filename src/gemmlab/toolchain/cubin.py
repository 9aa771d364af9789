"""The contents of a cubin: each function's code, resources and parameters; variables; and relocations.

NVIDIA publishes no description of the format. This reader was written from cubins of known kernels, for every
architecture from sm_75 to sm_120 and for CUDA 12 and 13; attributes that do not matter for running code are ignored.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gemmlab.core.architecture import number_of
from gemmlab.core.errors import UsageError
from gemmlab.toolchain import nv_info
from gemmlab.toolchain.elf import ALLOCATED, NOBITS, REL, RELA, Elf, Section, Symbol, read_elf
from gemmlab.toolchain.nv_info import Param

MACHINE = 190
RESERVED_SMEM_BYTES = 1024
"""Bytes at the start of every block's shared memory that the system reserves, from sm_90 on."""

_OBJECT, _FUNCTION, _ENTRY = 1, 2, 0x10
_LATER_ABI, _ACCELERATED = 8, 0x800
_BANKS = 18
_BANK_BYTES = 65536
_MOST_REGISTERS = 255
_MOST_VARIABLES = 1 << 36
_BANK = re.compile(r"\.nv\.constant(\d+)(?:\.(.+))?", re.DOTALL)
_RELOCATIONS = {
    1: "R_CUDA_32", 2: "R_CUDA_64", 3: "R_CUDA_G32", 4: "R_CUDA_G64", 55: "R_CUDA_ABS32_32",
    56: "R_CUDA_ABS32_LO_32", 57: "R_CUDA_ABS32_HI_32", 58: "R_CUDA_ABS47_34", 62: "R_CUDA_FUNC_DESC32_LO_32",
    63: "R_CUDA_FUNC_DESC32_HI_32", 70: "R_CUDA_32_LO", 71: "R_CUDA_32_HI",
}  # fmt: skip
_IN_PLACE = {1: "<i", 2: "<q", 3: "<i", 4: "<q"}
"""Kind of relocation -> format of the bytes to be patched, in which a table without addends has the addend. Other kinds
patch four bytes, and have no addend there.
"""


@dataclass(frozen=True, slots=True)
class CubinFunction:
    """The code of a function, and facts about it. `registers` are those of a thread, `barriers` those of a block."""

    name: str
    code: bytes = field(repr=False)
    entry: bool
    """True for a kernel, False for a function that kernels call."""
    registers: int
    barriers: int
    param_base: int
    """Offset in bytes of the parameters in constant bank 0."""
    params: tuple[Param, ...]
    static_smem_bytes: int
    """Shared memory that the kernel itself declares, in bytes."""
    reserved_smem_bytes: int
    """Bytes of shared memory that the system reserves before the kernel's own."""
    local_bytes: int
    """Bytes of this function's own stack frame, for each thread."""
    stack_bytes: int | None
    """Bytes of stack for each thread, with the frames of all functions that it calls; `None` if unknown because of
    recursion or a call by address.
    """
    max_threads: int | None
    """Most threads in a block, by `__launch_bounds__`, else by the required block shape; `None` without either."""
    block: tuple[int, int, int] | None
    """The required threads of a block in x, y and z (`__block_size__`, PTX `.reqntid`); `None` if not stated."""
    cluster: tuple[int, int, int] | None
    """Blocks of the required cluster in x, y and z (`__cluster_dims__`); `None` if not stated."""
    constants: Mapping[int, bytes] = field(repr=False)
    """Number of a constant bank -> its initial bytes for this function, before relocation."""

    @property
    def param_bytes(self) -> int:
        return max((param.offset + param.size for param in self.params), default=0)


@dataclass(frozen=True, slots=True)
class Variable:
    """A `__device__` or `__constant__` variable of `size` bytes, `offset` bytes from the start of `section`."""

    name: str
    section: str
    offset: int
    size: int
    data: bytes = field(repr=False)
    """Initial bytes, before relocation."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """An order to the loader: write the address of `symbol` plus `addend` at `offset` in `section`, in the form
    `kind`.
    """

    section: str
    offset: int
    kind: str
    """Name of the form, such as `R_CUDA_64`; `R_CUDA_<number>` for an unknown one."""
    symbol: str
    addend: int
    width: int
    """Number of bytes to be patched, if they are data and not an instruction."""


@dataclass(frozen=True, slots=True)
class Cubin:
    """A parsed cubin: functions and variables (`symbols`) by name, relocations and sections."""

    arch: str
    functions: Mapping[str, CubinFunction]
    symbols: Mapping[str, Variable]
    relocations: tuple[Relocation, ...]
    sections: Mapping[str, Section] = field(repr=False)
    """The sections that a loader puts into memory, by name: code, constant banks, shared memory, `.nv.global.init`, and
    `.nv.global` (zeros).
    """
    labels: Mapping[str, tuple[str, int]] = field(repr=False)
    """Functions that lie within the code section of another one: name -> (section, offset)."""

    def bank(self, section: str) -> tuple[int, str] | None:
        """Return (number, function) of the constant bank that a section name stands for; `None` for other sections.

        The function is empty if all functions share the bank.
        """
        match = _BANK.fullmatch(section)
        return (int(match[1]), match[2] or "") if match else None


def read_cubin(data: bytes, name: str) -> Cubin:
    """Parse a cubin. Raises `UsageError` with `name` and the fault for a malformed one.

    The result is consistent: variables and what relocations patch lie within their sections, and parameters within
    their bank.
    """
    elf = read_elf(data, name)
    if elf.machine != MACHINE:
        raise UsageError(f"{name}: not a cubin: an ELF file for machine {elf.machine}, not {MACHINE} (CUDA)")
    sections = {section.name: section for section in elf.sections if _loaded(section)}
    try:
        arch = _architecture(elf)
        reserved = RESERVED_SMEM_BYTES if number_of(arch) >= 90 else 0
        by_name = {section.name: section for section in elf.sections}
        functions = {function.name: function for function in _functions(elf, by_name, reserved)}
        placed = [(symbol, section) for symbol in elf.symbols if (section := elf.section_of(symbol))]
        symbols = {
            symbol.name: _variable(section, symbol, name)
            for symbol, section in placed
            if symbol.kind == _OBJECT and section.name in sections
        }
        labels = {
            symbol.name: (section.name, symbol.value)
            for symbol, section in placed
            if symbol.kind == _FUNCTION and symbol.name not in functions
        }
        relocations = tuple(_relocations(elf, sections, name))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{name}: a malformed cubin: {error}") from error
    for function in functions.values():
        _require_sane(function, name)
    if not functions:
        raise UsageError(f"{name}: no functions in this cubin")
    return Cubin(arch, functions, symbols, relocations, sections, labels)


def digest(data: bytes, name: str) -> str:
    """Return the SHA-256, in hexadecimal, of what a GPU gets from a cubin: code, constants, variables and attributes.

    Line information and PTX in the cubin are left out: they have paths, and a comment in the source changes them.
    Raises `UsageError` with `name` for a malformed file.
    """
    parts = hashlib.sha256()
    for section in read_elf(data, name).sections:
        if _loaded(section) or section.name.startswith(".nv.info"):
            head = f"{section.name}\0{section.size}\0{section.align}\0{len(section.data)}\0"
            parts.update(head.encode() + section.data)
    return parts.hexdigest()


def _loaded(section: Section) -> bool:
    if not section.flags & ALLOCATED or section.name.startswith((".nv.merc", ".nv.capmerc")):
        return False
    return section.name.startswith((".text.", ".nv.constant", ".nv.global", ".nv.shared"))


def _architecture(elf: Elf) -> str:
    """Return the architecture, by the flags in the ELF header.

    In the layout of later compilers the flags do not distinguish sm_90a from sm_90; the compiler's note does.
    """
    if elf.abi_version < _LATER_ABI:
        return f"sm_{elf.flags & 0xFF}{'a' if elf.flags & _ACCELERATED else ''}"
    number = elf.flags >> 8 & 0xFF
    for section in elf.sections:
        if section.name == ".note.nv.tkinfo":
            match = re.search(rb"-arch[ =](sm_(\d+)[af]?)\b", section.data)
            if match and int(match[2]) == number:
                return match[1].decode()
    return f"sm_{number}"


def _functions(elf: Elf, by_name: Mapping[str, Section], reserved: int) -> Iterator[CubinFunction]:
    per_symbol = nv_info.by_symbol(by_name.get(".nv.info"))
    for index, symbol in enumerate(elf.symbols):
        text = by_name.get(f".text.{symbol.name}")
        if symbol.kind == _FUNCTION and text is not None and elf.section_of(symbol) is text:
            yield _function(by_name, symbol, text, per_symbol.get(index, {}), reserved)


def _function(
    by_name: Mapping[str, Section], symbol: Symbol, text: Section, sizes: Mapping[int, int], reserved: int
) -> CubinFunction:
    info = nv_info.read(by_name.get(f".nv.info.{symbol.name}"))
    banks = dict(_banks(by_name, symbol.name))
    shared = by_name.get(f".nv.shared.{symbol.name}")
    stack = sizes.get(nv_info.STACK_SIZE, 0)
    return CubinFunction(
        name=symbol.name,
        code=text.data[symbol.value : symbol.value + symbol.size],
        entry=bool(symbol.other & _ENTRY),
        # Files that lack the attributes have these counts in the section's own header.
        registers=sizes.get(nv_info.REGISTERS, text.info >> 24),
        barriers=text.flags >> 20 & 0x7F if info.barriers is None else info.barriers,
        param_base=len(banks.get(0, b"")) if info.param_base is None else info.param_base,
        params=info.params,
        static_smem_bytes=max(shared.size - reserved, 0) if shared else 0,
        reserved_smem_bytes=reserved,
        local_bytes=sizes.get(nv_info.FRAME_SIZE, 0),
        stack_bytes=None if stack == nv_info.UNKNOWN_STACK else stack,
        max_threads=info.max_threads,
        block=info.block,
        cluster=info.cluster,
        constants=banks,
    )


def _banks(by_name: Mapping[str, Section], function: str) -> Iterator[tuple[int, bytes]]:
    for number in range(_BANKS):
        section = by_name.get(f".nv.constant{number}.{function}") or by_name.get(f".nv.constant{number}")
        if section is not None:
            yield number, section.data


def _require_sane(function: CubinFunction, name: str) -> None:
    """Raise `UsageError` if a function has impossible registers, parameters or constant banks."""
    if not 0 <= function.registers <= _MOST_REGISTERS:
        raise UsageError(f"{name}: a malformed cubin: {function.name} has {function.registers} registers")
    if function.param_base + function.param_bytes > _BANK_BYTES:
        raise UsageError(f"{name}: a malformed cubin: the parameters of {function.name} end behind constant bank 0")
    for number, bank in function.constants.items():
        if len(bank) > _BANK_BYTES:
            raise UsageError(f"{name}: a malformed cubin: constant bank {number} has {len(bank)} bytes")


def _variable(section: Section, symbol: Symbol, name: str) -> Variable:
    end = symbol.value + symbol.size
    if end > section.size or section.size > _MOST_VARIABLES:
        raise UsageError(
            f"{name}: a malformed cubin: {symbol.name} ends at byte {end} of {section.name}, which has {section.size}"
        )
    data = bytes(symbol.size) if section.kind == NOBITS else section.data[symbol.value : end]
    return Variable(symbol.name, section.name, symbol.value, symbol.size, data)


def _relocations(elf: Elf, sections: Mapping[str, Section], name: str) -> Iterator[Relocation]:
    for table in elf.sections:
        if table.kind not in {REL, RELA}:
            continue
        if table.info >= len(elf.sections):
            raise UsageError(
                f"{name}: a malformed cubin: {table.name} patches section {table.info}, which is not there"
            )
        target = elf.sections[table.info]
        if target.name not in sections:
            continue
        for entry in elf.relocations(table):
            layout = _IN_PLACE.get(entry.kind)
            width = struct.calcsize(layout or "<i")
            if entry.symbol >= len(elf.symbols) or entry.offset + width > target.size:
                raise UsageError(
                    f"{name}: a malformed cubin: {table.name} patches {width} bytes from byte {entry.offset} on of "
                    f"{target.name} with symbol {entry.symbol}; there are {target.size} bytes and {len(elf.symbols)} "
                    "symbols"
                )
            addend = entry.addend
            if addend is None:
                addend = struct.unpack_from(layout, target.data, entry.offset)[0] if layout else 0
            kind = _RELOCATIONS.get(entry.kind, f"R_CUDA_{entry.kind}")
            yield Relocation(target.name, entry.offset, kind, elf.symbols[entry.symbol].name, addend, width)
