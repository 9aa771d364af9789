"""The value that is passed for each argument of a CUDA kernel: found by the argument's name, or stated in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gemmlab.core.elements import ELEMENTS, Element
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse
from gemmlab.kernels.cuda_file.c_types import (
    C_TYPES,
    MAP_TYPES,
    REALS,
    TEXTURE_TYPE,
    TICKET_POINTERS,
    element_of,
    is_plain,
)
from gemmlab.kernels.cuda_file.signature import Argument, Signature
from gemmlab.kernels.names import OpNames, map_over, other_operation, shown, texture_over

_TEXTURE = re.compile(r"(?:tex(?:ture)?_?)?(\w+?)(?:_?tex(?:ture)?)?", re.IGNORECASE)
_OVER = re.compile(r"(texture|tensor_map)\((\w+)\)")
_MAP = re.compile(r"(?:(?:tensor_?|t)?maps?_?)?(\w+?)(?:_?(?:tensor_?|t)?maps?)?", re.IGNORECASE)
TICKETS = "tickets"
_DECORATED = re.compile(
    r"(?:(?:d|dev|device|gpu|g|p|ptr|in|out|mat|matrix)_|(?:d|dev|gpu|g|p|ptr|mat|matrix)(?=[A-Z]))*"
    r"(?P<bare>\w+?)(?:_(?:d|dev|device|gpu|ptr|mat|matrix|in|out))*"
)
_EDGES = ("size", "width", "dim", "length", "len", "order")
"""Usual names of the single extent of square matrices, besides an extent's own name."""
_OTHER_NAMES: Mapping[str, str] = {
    "stridea": "lda", "strideb": "ldb", "stridec": "ldc", "transposea": "trans_a", "transposeb": "trans_b",
    "transa": "trans_a", "transb": "trans_b", "in": "x", "input": "x", "idata": "x", "output": "out", "odata": "out",
    "result": "out",
}  # fmt: skip
_UNSAID: Mapping[str, str] = {"alpha": "alpha == 1", "beta": "beta == 0", "ldc": "ldc == max(1, N)"}
"""The restriction on problems if a kernel lacks an argument, by the argument's name."""
_ROW_LENGTHS: Mapping[str, tuple[str, str, str]] = {"lda": ("K", "M", "TRANS_A"), "ldb": ("N", "K", "TRANS_B")}
"""Leading dimension -> the extent that it must equal if a kernel has no argument for it: that for a plain operand, that
for a transposed one, and the flag that tells these apart.
"""


@dataclass(frozen=True, slots=True)
class ArgumentMatch:
    """A kernel's arguments in order: each is a name of the operation's values, or an expression over its numbers, the
    kernel's parameters and `phase`.
    """

    values: tuple[str | Expression, ...]
    square: bool
    """True if one argument stands for all extents, which must then be equal."""

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments as texts: names, and the texts of expressions."""
        return tuple(value if isinstance(value, str) else value.text for value in self.values)

    def restrictions(
        self, names: OpNames, elsewhere: Sequence[str], layouts: Sequence[str] = ("nn",),
        always_reads: Collection[str] = (),
    ) -> list[tuple[str, str]]:  # fmt: skip
        """Return the conditions that missing arguments put on a problem, each with its reason.

        Names in `elsewhere` reach the kernel in another way, so they put none. A kernel that reads an operand in any
        case (`always_reads`) adds it as it is, so without an argument for its factor that is 1.
        """
        equalities = [(f"{shown(a)} == {shown(b)}", "one argument stands for all extents")
                for a, b in zip(names.extents, names.extents[1:], strict=False) if self.square]  # fmt: skip
        extents = {name.lower() for name in elsewhere} | {value for value in self.values if isinstance(value, str)}
        implied = {**_UNSAID, **{name: _row_length(name, layouts) for name in _ROW_LENGTHS}}
        lacking = [name for name in (*names.whole, *names.real) if name not in extents and name in implied]
        why = {name: f"its signature has no {name}" for name in lacking}
        for operand in always_reads:
            factor = names.factors[operand]
            if factor in why:
                implied[factor] = f"{factor} == 1"
                why[factor] += f", and it always reads {operand.upper()}"
        return equalities + [(implied[name], why[name]) for name in lacking]


def _row_length(name: str, layouts: Sequence[str]) -> str:
    plain, turned, flag = _ROW_LENGTHS[name]
    stored = {layout["AB".index(flag[-1])] for layout in layouts}
    extent = f"{turned} if {flag} else {plain}" if len(stored) > 1 else turned if "t" in stored else plain
    return f"{name} == max(1, {extent})"


def match_by_name(
    signature: Signature, names: OpNames, templated: Sequence[str] = (), launch: Collection[str] = ()
) -> ArgumentMatch:
    """Match arguments by type and name, in the usual spellings: `M` or `m`, `d_A`, `lda` or `stride_a`.

    `templated` are the values that are template parameters, so that no argument needs to have them; nor do the extents
    that lack an argument if grid and threads name each of them (`launch`). `UsageError` lists the matches found and
    says how to state the others.
    """
    found = [_plain_match(argument, names) for argument in signature.args]
    have = {name for name in found if name is not None} | set(templated)
    lacking = [name for name in names.extents if name not in have]
    if all(shown(name) in launch for name in lacking):
        lacking = []
    square = False
    if lacking:
        edges = [i for i, argument in enumerate(signature.args) if _is_edge(argument, found[i], names)]
        square = len(edges) == 1 and len(lacking) >= len(names.extents) - 1 and len(names.extents) > 1
        if square:
            found[edges[0]] = names.extents[0]
    twice = sorted({shown(name) for name in found if name is not None and found.count(name) > 1})
    unknown = [str(argument) for argument, name in zip(signature.args, found, strict=True) if name is None]
    mapped = [name for name in names.operands if map_over(name) in found]
    present = {*found, *templated, *mapped}
    unfound = [name for name in (*(() if square else lacking), *names.operands) if name not in present]
    if unknown or twice or unfound:
        problems = [
            *_unstated_memory(signature, names), *(f"{text!r} is none of them" for text in unknown),
            *(f"{name} occurs twice" for name in twice),
            *(f"{_in_args(name, names)} was not found" for name in unfound),
        ]  # fmt: skip
        matched = ", ".join(f"{argument.name} is {_in_args(name, names)}"
                            for argument, name in zip(signature.args, found, strict=True) if name)  # fmt: skip
        every = ", ".join(_in_args(name, names) for name in (*names.whole, *names.real, *names.operands))
        raise UsageError(
            f"arguments of {signature} cannot all be matched by name: {'; '.join(problems)} "
            f"(found: {matched or 'none'}; {names.op} has {every}). "
            f"{other_operation(names.op)}. "
            f"Otherwise say what each one is, in order: {_example(signature, found, names)}"
        )
    return ArgumentMatch(tuple(name for name in found if name is not None), square)


def match_in_order(
    signature: Signature, names: OpNames, texts: Sequence[str], known: Sequence[str], launch: Collection[str] = ()
) -> ArgumentMatch:
    """Match arguments with `texts` in order: each is the name of a value of the operation, or an expression over its
    numbers and the `known` names.

    `launch` are the names that grid and threads use; an extent among them needs no argument. Raises `UsageError` for a
    text that does not fit its argument, and for an operand without an argument.
    """
    if len(texts) != len(signature.args):
        raise UsageError(f"{len(texts)} names for the {len(signature.args)} arguments of {signature}")
    textures = [texture_over(operand) for operand in names.operands]
    maps = [map_over(operand) for operand in names.operands]
    values_of = {*names.operands, *names.whole, *names.real, *names.records, *textures, *maps}
    values: list[str | Expression] = []
    for text, argument in zip(texts, signature.args, strict=True):
        name = text.strip().lower()
        if name in values_of:
            values.append(name)
        else:
            expression = parse(text)
            expression.check_names((*names.in_expressions, *known))
            values.append(expression)
        fits = argument.is_pointer == (name in names.operands)
        fits = fits and (name != TICKETS or argument.type in TICKET_POINTERS)
        fits = fits and (argument.type in MAP_TYPES) == (name in maps)
        fits = fits and is_plain(argument) == (name not in (*names.records, *maps))
        if not fits or (name in textures) > (argument.type == TEXTURE_TYPE):
            raise UsageError(f"{text!r} cannot be {str(argument)!r} of {signature}")
    ways = {name: {name, texture_over(name), map_over(name)} for name in names.operands}
    if missing := [name for name in names.operands if not ways[name] & {*values}]:
        raise UsageError(f"{_in_args(missing[0], names)} is missing from {', '.join(texts)}")
    extents = [value for value in values if value in names.extents]
    elsewhere = {*launch, *(name for value in values if isinstance(value, Expression) for name in value.names)}
    lacking = [name for name in names.extents if name not in extents and shown(name) not in elsewhere]
    return ArgumentMatch(tuple(values), len(extents) == 1 and bool(lacking))


def check_types(signature: Signature, names: OpNames) -> None:
    """Raise `UsageError` for an argument of a type that no value can have.

    If the operation has structures, an unknown type is taken for one of them.
    """
    for argument in signature.args:
        if argument.is_pointer:
            fits = element_of(argument) is not None
        else:
            fits = bool(is_plain(argument) or names.records or argument.type in MAP_TYPES)
        if fits:
            continue
        what = f"argument {str(argument)!r} of {signature}"
        number = C_TYPES.get(argument.type.removesuffix("*"))
        if number is not None:
            known = ", ".join(ELEMENTS)
            raise UsageError(f"{what}: no operation has operands of {np.dtype(number).name}; there are {known}")
        raise UsageError(
            f"{what}: pointers are float* (float4* and the like too), half*, __nv_bfloat16*, double*, __nv_fp8_e4m3*, "
            "int8_t*, int*, unsigned*, long long*, values int, unsigned, long long, size_t, float, double, half, bool, "
            "cudaTextureObject_t, CUtensorMap or FourMaps, or names that the file gives to these with using, typedef "
            "or #define"
        )


def operand_types(
    signature: Signature, matched: ArgumentMatch, names: OpNames, stated: Mapping[str, Element]
) -> dict[str, Element]:
    """Return the element type of each operand, by its name, from the pointers in the signature.

    If the `stated` type of an operand is stored as the elements that the pointer points to, it is the stated one: bytes
    may be 8-bit floats. Raises `UsageError` for two types of one operand, and for `__nv_fp8_storage_t` without a stated
    type.
    """
    found: dict[str, Element] = {}
    for argument, value in zip(signature.args, matched.values, strict=True):
        kind = element_of(argument)
        if not isinstance(value, str) or value not in names.operands or value == TICKETS or kind is None:
            continue
        known = stated.get(value, kind)
        if known.storage is kind.storage:
            kind = known
        elif argument.type.endswith("_storage_t*"):
            raise UsageError(
                f"{str(argument)!r} of {signature} are bytes of either format; state which: "
                f'op = "{names.op}:float8_e4m3fn" or float8_e5m2, one for all operands or one for each'
            )
        if found.setdefault(value, kind) != kind:
            raise UsageError(f"{str(argument)!r} of {signature}: {value.upper()} is of {found[value].name} elsewhere")
    return found


def _plain_match(argument: Argument, names: OpNames) -> str | None:
    if argument.type == TEXTURE_TYPE:
        over = _TEXTURE.fullmatch(argument.name)
        return texture_over(over[1].lower()) if over and over[1].lower() in names.operands else None
    if argument.type in MAP_TYPES:
        over = _MAP.fullmatch(argument.name)
        return map_over(over[1].lower()) if over and over[1].lower() in names.operands else None
    match = _DECORATED.fullmatch(argument.name)
    bare = match["bare"] if match else argument.name
    candidates = _pointers(argument, names) if argument.is_pointer else _values(argument, names)
    written = (argument.name.lower(), bare.lower(), bare.lower().replace("_", ""))
    return next((name for name in (_OTHER_NAMES.get(each, each) for each in written) if name in candidates), None)


def _unstated_memory(signature: Signature, names: OpNames) -> list[str]:
    """Return messages about arguments named `workspace` or `tickets` that the header does not state."""
    have = {argument.name for argument in signature.args}
    return [
        f"the header does not state `{name}`" for name in ("workspace", TICKETS) if name in have - {*names.operands}
    ]


def _pointers(argument: Argument, names: OpNames) -> tuple[str, ...]:
    counts = argument.type in TICKET_POINTERS
    return tuple(name for name in names.operands if name != TICKETS or counts)


def _values(argument: Argument, names: OpNames) -> tuple[str, ...]:
    if not is_plain(argument):
        return names.records
    return names.real if argument.type in REALS else (*names.whole, *names.real)


def _is_edge(argument: Argument, found: str | None, names: OpNames) -> bool:
    if argument.is_pointer or argument.type in REALS:
        return False
    return found in names.extents or (found is None and argument.name.lower().strip("_") in _EDGES)


def _in_args(name: str, names: OpNames) -> str:
    over = _OVER.fullmatch(name)
    if over is not None:
        return f"{over[1]}({over[2].upper()})"
    return name.upper() if name in names.operands else shown(name)


def _example(signature: Signature, found: Sequence[str | None], names: OpNames) -> str:
    parts = [_in_args(name, names) if name else "?" for name in found]
    return f"args = {parts!r}, or --args {','.join(parts)}".replace("'", '"') if signature.args else "it has none"
