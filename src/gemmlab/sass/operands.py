"""Parser for the operands in nvdisasm's text. It raises no errors: an operand of unknown form gets the kind "text"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from gemmlab.sass.instruction import PT, RZ, UNRESOLVED, URZ, Kind, Operand

_REGISTER = re.compile(r"([-~!]?)(\|?)(U?R(?=\d|Z)|U?P(?=\d|T))(\d+|Z|T)((?:\.\w+)*)(\|?)((?:\.\w+)*)")
_HEX = re.compile(r"([-+]?)0x([0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|INF|[QS]NAN)", re.IGNORECASE)
_NUMBERED = re.compile(r"(B|SB|gsb)(\d+)")
_SPECIAL = re.compile(r"SR_?[A-Z]\w*(?:\.\w+)*|PR|SRZ")
_LABEL = re.compile(r"`\((.+)\)")
_BRACKETS = re.compile(r"([-~]?)(\|?)(\w*)\[([^\[\]]*)\](?:\[([^\[\]]*)\])?((?:\.\w+)*)(\|?)((?:\.\w+)*)")
_TERM = re.compile(r"(U?R)(\d+|Z)((?:\.\w+)*)")
_RELOCATED = re.compile(r"\w+(?:@\w*)+\(.*\)")
_SYMBOL = re.compile(r"\+?`\((.*)\)")
_HALF_BANK = 0x8000
"""Half the bytes of a constant bank."""
FLOAT = "float"
_KINDS: dict[str, Kind] = {"R": "reg", "UR": "ureg", "P": "pred", "UP": "upred"}


def parse_operands(text: str, encoding: int, labels: Mapping[str, int]) -> tuple[Operand, ...]:
    """Return the operands of an instruction.

    `text` is the instruction's text without guard and opcode. Floats and relocated immediates take their values from
    `encoding`, the 128-bit word, and labels theirs from `labels` (symbol -> byte address).
    """
    found = [parse_operand(token) for token in _tokens(text)]
    floats = sum(operand.kind == "imm" and operand.name == FLOAT for operand in found)
    # Every immediate is in one 32-bit field. The first of two floats is the upper half of that field.
    field = encoding >> 32 & 0xFFFFFFFF
    patterns = iter((field,) if floats == 1 else (field >> 16, field & 0xFFFF))
    return tuple(_completed(operand, field, patterns, labels) for operand in found)


def _completed(operand: Operand, field: int, patterns: Iterator[int], labels: Mapping[str, int]) -> Operand:
    if operand.kind == "label":
        return replace(operand, value=labels.get(operand.name, UNRESOLVED))
    if operand.kind != "imm" or not operand.name:
        return operand
    if operand.name != FLOAT:
        return replace(operand, value=field)
    pattern = next(patterns, None)
    return _unknown(operand.text) if pattern is None else replace(operand, value=pattern, name="")


def _tokens(text: str) -> Iterator[str]:
    # Operands are separated by commas, but by spaces in "BRX R6 -0x100" and "RET.REL.NODEC R20 `(f)".
    # HSETP2 has a space within a constant: "c[0x0] [0x18c].H0_H0".
    text = text.replace("] [", "][")
    depth = start = 0
    for i, character in enumerate(text + ","):
        depth += (character in "[({") - (character in "])}")
        if character in ", " and depth <= 0:
            if start < i:
                yield text[start:i]
            start = i + 1


@lru_cache(maxsize=1 << 14)
def parse_operand(token: str) -> Operand:
    """Return one operand, parsed from its text alone.

    A label has the value `UNRESOLVED`. A float has the name `FLOAT` and value 0, a relocated immediate value 0.
    """
    for parser in (_register, _immediate, _bracketed, _named):
        operand = parser(token)
        if operand is not None:
            return operand
    return _unknown(token)


def _unknown(token: str) -> Operand:
    return Operand("text", token, name=token)


def _register(token: str) -> Operand | None:
    match = _REGISTER.fullmatch(token)
    if match is None:
        return None
    sign, bar, file, number, inner, closing, outer = match.groups()
    if bool(bar) != bool(closing):
        return None
    suffix, reuse = _suffix(inner + outer)
    zero = {"R": RZ, "UR": URZ}.get(file, PT)
    return Operand(
        _KINDS[file], token, index=int(number) if number.isdigit() else zero, suffix=suffix, reuse=reuse,
        neg=sign == "-", invert=sign in ("!", "~"), absolute=bool(bar),
    )  # fmt: skip


def _suffix(dotted: str) -> tuple[tuple[str, ...], bool]:
    parts = tuple(part for part in dotted.split(".") if part)
    return tuple(part for part in parts if part != "reuse"), "reuse" in parts


def _immediate(token: str) -> Operand | None:
    if match := _HEX.fullmatch(token):
        value = int(match[2], 16) * (-1 if match[1] == "-" else 1)
        wide = not -(1 << 31) <= value < 1 << 32
        return Operand("imm", token, value=value & ((1 << (64 if wide else 32)) - 1))
    if _FLOAT.fullmatch(token):
        return Operand("imm", token, name=FLOAT)
    if _RELOCATED.fullmatch(token):
        return Operand("imm", token, name=token)
    return None


def _bracketed(token: str) -> Operand | None:
    match = _BRACKETS.fullmatch(token)
    if match is None:
        return None
    sign, bar, prefix, first, second, inner, closing, outer = match.groups()
    if bool(bar) != bool(closing):
        return None
    symbol = _SYMBOL.search(first)
    if symbol and second is None:
        # In code that is not linked yet, neither bank nor offset is known.
        first = _SYMBOL.sub("", first) or "0x0"
    address = _address(first if second is None else second)
    if address is None:
        return None
    base, ubase, offset, scale = address
    suffix, reuse = _suffix(inner + outer)
    common = Operand(
        "mem", token, value=offset, base=base, ubase=ubase, suffix=(*scale, *suffix), reuse=reuse, name=prefix,
        neg=sign == "-", invert=sign == "~", absolute=bool(bar),
    )  # fmt: skip
    if symbol:
        return replace(common, kind="const" if prefix == "c" else "mem", bank=UNRESOLVED, name=symbol[0].lstrip("+"))
    if second is None:
        return common
    bank = _address(first)
    if bank is None:
        return None
    if prefix in ("c", "cx"):
        number = bank[2] if bank[1] == URZ else UNRESOLVED
        # The disassembler shows the 16 bits of an offset as a signed number, also where no register is added to it.
        upper = (base, ubase) == (RZ, URZ) and -_HALF_BANK <= offset < 0
        value = offset + 2 * _HALF_BANK if upper else offset
        return replace(
            common, kind="const", value=value, bank=number, desc=bank[1], name="" if prefix == "c" else prefix
        )
    return replace(common, desc=bank[1], name="" if prefix == "desc" else prefix)


def _address(text: str) -> tuple[int, int, int, tuple[str, ...]] | None:
    # Terms joined by "+": at most one register, one uniform register and one signed offset.
    base, ubase, offset = RZ, URZ, 0
    suffix: tuple[str, ...] = ()
    for term in text.split("+"):
        number = _HEX.fullmatch(term.strip())
        register = _TERM.fullmatch(term.strip())
        if number:
            offset += int(number[2], 16) * (-1 if number[1] == "-" else 1)
        elif register:
            suffix += _suffix(register[3])[0]
            if register[1] == "R":
                base = RZ if register[2] == "Z" else int(register[2])
            else:
                ubase = URZ if register[2] == "Z" else int(register[2])
        else:
            return None
    return base, ubase, offset, suffix


def _named(token: str) -> Operand | None:
    if match := _LABEL.fullmatch(token):
        return Operand("label", token, name=match[1], value=UNRESOLVED)
    if match := _NUMBERED.fullmatch(token):
        return Operand("barrier" if match[1] == "B" else "scoreboard", token, index=int(match[2]), name=match[1])
    if _SPECIAL.fullmatch(token):
        return Operand("special", token, name=token)
    return None
