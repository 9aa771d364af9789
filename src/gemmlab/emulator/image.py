"""A cubin's kernel loaded on the emulated device: code, constant banks and variables, with addresses relocated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import SiteCounters
from gemmlab.core.errors import CompileError
from gemmlab.emulator.decode import Code, decode
from gemmlab.emulator.launch_layout import DRIVER_CODE, LOCAL_WINDOW, PARAMETERS, SHARED_WINDOW, VPRINTF, Launch
from gemmlab.emulator.memory_map import Allocation, MemoryMap
from gemmlab.emulator.operand_limits import highest_register, most_registers
from gemmlab.emulator.shared_variables import SharedVariable
from gemmlab.emulator.site_counters import unexecuted
from gemmlab.emulator.stack_room import stack_room
from gemmlab.sass.instruction import UNRESOLVED, Instruction, SassFunction
from gemmlab.toolchain.cubin import Cubin, CubinFunction, Relocation

Bytes = npt.NDArray[np.uint8]
ADDRESSES = 4
"""Number of the constant bank with the addresses of `__device__` variables."""
MOST_LOCAL = 512 * 1024
"""The most local memory in bytes that a GPU gives a thread."""
STACK_TOP = 0x28
"""Offset in constant bank 0 of the word from which a kernel reads the top of its stack."""
WINDOWS = 0x18
"""Offset in constant bank 0 of two words of 64 bits: the generic addresses at which shared and local memory begin."""
OUTSIDE = {DRIVER_CODE + 16 * i: name for i, name in enumerate(("__assertfail", "vprintf", "malloc", "free"))}
"""Names, by invented code address, of functions that the driver supplies. The emulator supplies `vprintf`; a call of
another one ends the launch, and is reported by name."""
ASYNCHRONOUS = frozenset({
    "SYNCS", "ARRIVES", "UBLKCP", "UBLKRED", "UBLKPF", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACMDFLUSH",
    "STAS", "REDAS", "UCGABAR_ARV", "UCGABAR_WAIT",
})  # fmt: skip
"""Opcodes that need the engine of asynchronous operations, whatever their modifiers."""
_VARIABLES = (".nv.global.init", ".nv.global")
_HIGH = {"R_CUDA_ABS32_HI_32", "R_CUDA_32_HI", "R_CUDA_FUNC_DESC32_HI_32"}


@dataclass(frozen=True, slots=True)
class Image:
    """A kernel that is ready to run. `constants` are its constant banks by number, without a launch's arguments."""

    function: CubinFunction
    arch: str
    code: Code
    constants: Mapping[int, Bytes] = field(repr=False)
    registers: int
    """Registers of each thread: the kernel's, or more if code that it may call names more; at least 1."""
    local_bytes: int
    byte_shared: bool
    """True if some access to shared memory is narrower than 4 bytes."""
    global_shift: int
    """Log2 of the narrowest access to global memory in bytes: 0, 1 or 2; 2 if none is narrower than 4 bytes."""
    async_copies: bool
    """True if the kernel copies from global to shared memory by cp.async."""
    warpgroups: bool
    """True if the kernel multiplies matrices by warpgroups."""
    asynchronous: bool
    """True if the kernel uses mbarriers, bulk copies, asynchronous stores or cluster barriers, or if code of its cubin
    prints."""
    unexecuted: tuple[SiteCounters, ...] = field(repr=False)
    """The counters of each instruction for a launch that does not execute it."""
    parameter_addresses: bool
    """True if the kernel is code for sm_90 and takes the address of a parameter (`__grid_constant__`)."""
    shared_variables: tuple[SharedVariable, ...] = ()
    """The kernel's `__shared__` variables; empty if its PTX does not tell their places."""


def load_image(cubin: Cubin, functions: Mapping[str, SassFunction], name: str, memory: MemoryMap) -> Image:
    """Return the kernel `name` of a cubin, loaded into `memory`; `functions` is the cubin's parsed disassembly.

    Raises `CompileError` if the cubin has no such kernel or is damaged, or if a thread needs more local memory than
    `MOST_LOCAL`, and `UnsupportedError` for unknown instructions or forms.
    """
    function = cubin.functions.get(name)
    if function is None or name not in functions:
        there = ", ".join(n for n, f in cubin.functions.items() if f.entry)
        raise CompileError(f"no kernel {name!r} in this cubin; it has {there or 'none'}")
    sections = _place_variables(cubin, memory)
    bases = {section: allocation.address for section, allocation in sections.items()}
    called = {other: code for other, code in functions.items() if not _is_kernel(cubin, other)}
    most = most_registers(functions[name].instructions, function.registers)
    if (highest := highest_register(functions[name].instructions)) >= most:
        raise CompileError(f"{name}: damaged: its code names R{highest}, and its attributes give it {most}")
    starts, instructions = _gather({name: functions[name], **called}, name)
    symbols = {outside: address for address, outside in OUTSIDE.items()} | {
        symbol.name: bases[symbol.section] + symbol.offset
        for symbol in cubin.symbols.values()
        if symbol.section in bases
    }
    symbols |= {
        label: starts[section] + offset for label, (section, offset) in cubin.labels.items() if section in starts
    }
    symbols |= {other: starts[f".text.{other}"] for other in functions if f".text.{other}" in starts}
    for relocation in cubin.relocations:
        if relocation.section in sections:
            _patch(sections[relocation.section].data, relocation, symbols)
    instructions = _patched(instructions, starts, cubin.relocations, symbols)
    local = stack_room(function, instructions)
    if local > MOST_LOCAL:
        raise CompileError(
            f"{name}: it needs {local} bytes of local memory a thread; no GPU has more than {MOST_LOCAL}"
        )
    entries = {starts[f".text.{other}"] for other in called if other != name}
    entries |= {starts[section] + offset for section, offset in cubin.labels.values() if section in starts}
    return Image(
        function=function,
        arch=cubin.arch,
        code=decode(
            SassFunction(name, tuple(instructions), functions[name].labels),
            frozenset(address // 16 for address in entries if address % 16 == 0),
        ),
        constants=_constants(cubin, function, symbols, local),
        registers=max(function.registers, 1, highest_register(instructions) + 1),
        local_bytes=local,
        byte_shared=any(_narrow_shared(instruction) for instruction in instructions),
        global_shift=min(map(_global_shift, instructions), default=2),
        async_copies=any(instruction.opcode == "LDGSTS" for instruction in instructions),
        warpgroups=any(instruction.opcode.endswith("GMMA") for instruction in instructions),
        asynchronous=any(_asynchronous(instruction) for instruction in instructions)
        or any(relocation.symbol == OUTSIDE[VPRINTF] for relocation in cubin.relocations),
        unexecuted=unexecuted(instructions),
        parameter_addresses=cubin.arch.startswith("sm_9") and any(map(_takes_parameter, instructions)),
    )


def _narrow_shared(instruction: Instruction) -> bool:
    narrow = {"U8", "S8", "U16", "S16"} & set(instruction.modifiers)
    return bool(narrow) and instruction.opcode in {"LDS", "STS", "LD", "ST"}


def _takes_parameter(instruction: Instruction) -> bool:
    return any(
        (operand.kind, operand.bank, operand.value) == ("const", 0, PARAMETERS) for operand in instruction.operands
    )


def _asynchronous(instruction: Instruction) -> bool:
    return instruction.opcode in ASYNCHRONOUS or "ARRIVE" in instruction.modifiers


def _global_shift(instruction: Instruction) -> int:
    if instruction.opcode not in {"LDG", "STG", "LD", "ST"}:
        return 2
    return 0 if {"U8", "S8"} & set(instruction.modifiers) else 1 if {"U16", "S16"} & set(instruction.modifiers) else 2


def _gather(functions: Mapping[str, SassFunction], name: str) -> tuple[dict[str, int], list[Instruction]]:
    """Return the start address of each code section by name, and all instructions: the kernel's first, at address 0."""
    starts: dict[str, int] = {}
    found: list[Instruction] = []
    for other in (name, *(each for each in functions if each != name)):
        start = 16 * len(found)
        starts[f".text.{other}"] = start
        found.extend(_moved(instruction, start) for instruction in functions[other].instructions)
    return starts, found


def _is_kernel(cubin: Cubin, name: str) -> bool:
    function = cubin.functions.get(name)
    return function is not None and function.entry


def _moved(instruction: Instruction, start: int) -> Instruction:
    if not start:
        return instruction
    operands = tuple(
        replace(operand, value=operand.value + start) if operand.kind == "label" and operand.value >= 0 else operand
        for operand in instruction.operands
    )
    return replace(instruction, address=instruction.address + start, operands=operands)


def _patched(
    instructions: list[Instruction],
    starts: Mapping[str, int],
    relocations: tuple[Relocation, ...],
    symbols: Mapping[str, int],
) -> list[Instruction]:
    """Return the instructions with relocations applied: labels get whole addresses, immediates 32 bits of an address.

    A relocation of an unknown section or symbol is skipped. Raises `CompileError` for one behind the end of the code.
    """
    patched = list(instructions)
    for relocation in relocations:
        if relocation.section not in starts or relocation.symbol not in symbols:
            continue
        value = symbols[relocation.symbol] + relocation.addend
        word = (value >> 32 if relocation.kind in _HIGH else value) & 0xFFFFFFFF
        index = (starts[relocation.section] + relocation.offset) // 16
        if index >= len(patched):
            raise CompileError(
                f"damaged: byte {relocation.offset} of {relocation.section} is to be patched, which is behind its end"
            )
        operands = tuple(
            replace(operand, value=value)
            if operand.kind == "label"
            else replace(operand, kind="imm", value=word)
            if operand.kind == "text" or "@" in operand.text
            else operand
            for operand in patched[index].operands
        )
        patched[index] = replace(patched[index], operands=operands)
    return patched


def names_variables(cubin: Cubin, functions: Mapping[str, SassFunction]) -> bool:
    """Return whether code contains the address of a `__device__` variable, or reads the bank of such addresses, or a
    bank whose number is not known.

    Every `constexpr` variable outside a function is a `__device__` variable, but few have their address taken.
    """
    there = {name for name, symbol in cubin.symbols.items() if symbol.section in _VARIABLES}
    patched = (relocation for relocation in cubin.relocations if relocation.section.startswith(".text"))
    if any(relocation.symbol in {*there, *_VARIABLES} for relocation in patched):
        return True
    return any(
        operand.kind == "const" and operand.bank in (ADDRESSES, UNRESOLVED)
        for function in functions.values()
        for instruction in function.instructions
        for operand in instruction.operands
    )


def _place_variables(cubin: Cubin, memory: MemoryMap) -> dict[str, Allocation]:
    placed = {}
    for name in _VARIABLES:
        section = cubin.sections.get(name)
        size = max((v.offset + v.size for v in cubin.symbols.values() if v.section == name), default=0)
        if size:
            allocation = memory.allocate(size, valid=True)
            allocation.data[:] = 0
            if section is not None and section.data:
                data = np.frombuffer(section.data, np.uint8)[:size]
                allocation.data[: data.size] = data
            placed[name] = allocation
    return placed


def _patch(data: Bytes, relocation: Relocation, symbols: Mapping[str, int]) -> None:
    value = symbols.get(relocation.symbol)
    if value is None:
        return
    value += relocation.addend
    word = value >> 32 if relocation.kind in _HIGH else value
    raw = (word & ((1 << 8 * relocation.width) - 1)).to_bytes(relocation.width, "little")
    end = relocation.offset + relocation.width
    if end > data.size:
        raise CompileError(f"damaged: byte {end} of {relocation.section} is to be patched; it has {data.size}")
    data[relocation.offset : end] = np.frombuffer(raw, np.uint8)


def _constants(cubin: Cubin, function: CubinFunction, symbols: Mapping[str, int], local: int) -> dict[int, Bytes]:
    banks: dict[int, Bytes] = {}
    for number in range(Launch.BANKS):
        bank = np.zeros(Launch.BANK_BYTES + Launch.BANK_SLACK, np.uint8)
        initial = np.frombuffer(function.constants.get(number, b""), np.uint8)
        bank[: initial.size] = initial
        banks[number] = bank
    for relocation in cubin.relocations:
        where = cubin.bank(relocation.section)
        if where is not None and where[1] in {"", function.name} and where[0] < Launch.BANKS:
            _patch(banks[where[0]], relocation, symbols)
    banks[0][: function.param_base] = 0
    banks[0][STACK_TOP : STACK_TOP + 4].view(np.uint32)[0] = local
    for offset, window in ((WINDOWS, SHARED_WINDOW), (WINDOWS + 8, LOCAL_WINDOW)):
        banks[0][offset : offset + 8].view(np.uint64)[0] = window << 32
    return banks


def plain_name(mangled: str) -> str:
    """Return a kernel's name as in its source, without parameters: `block_tile` for `_Z10block_tileILi32EEvi`.

    A name that does not begin with `_Z` and a length (`extern "C"`, in a namespace) is returned as it is.
    """
    match = re.match(r"_Z(\d+)", mangled)
    if match is None:
        return mangled
    return mangled[match.end() : match.end() + int(match[1])]
