"""Read the values of a kernel file's statements one by one: their types, names and expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse, split
from gemmlab.core.gpu import ARCHITECTURES
from gemmlab.core.precision import PRECISIONS
from gemmlab.core.program import Config
from gemmlab.kernels.claims import DEFAULT_SHAPE, Expectation
from gemmlab.kernels.cuda_file.header import HeaderValues
from gemmlab.kernels.cuda_file.macro_advice import require_no_macro
from gemmlab.kernels.names import OpNames, other_operation
from gemmlab.ops.catalog import find_op

LAYOUTS = ("nn", "nt", "tn", "tt")
_PARAMETER = re.compile(r"[A-Z][A-Z0-9_]*")
_PART = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = ("ceil_div", "min", "max", "blocks", "phase", "and", "or", "not", "if", "else")
_ID = re.compile(r"[A-Za-z]\w*", re.ASCII)
_ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")
_PRECISIONS = (*PRECISIONS, "float64", "float16", "bfloat16", "e8m13", "int32", "int64")
"""The precisions of float32 products, and the types in which products of other types are summed."""
_LARGEST_PARAMETER = 2**31 - 1
_MOST_COMBINATIONS = 1 << 16


class FactReader:
    """The statements about one kernel by key. Every method raises `UsageError`, with file, line and key, for a value
    that the key cannot have.
    """

    def __init__(self, stated: HeaderValues, text: str = "") -> None:
        self._stated, self._text = stated, text
        self._parts = dict[str, str]()

    def text(self, key: str, default: str = "") -> str:
        value = self._stated.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip() or "\n" in value.strip():
            raise self._stated.error(key, f"{value!r} is not one line of text")
        return value.strip()

    def arch(self) -> str:
        value = self.text("arch")
        if value and not _ARCH.fullmatch(value):
            raise self._stated.error("arch", f"{value!r} is not an architecture, as sm_80 or sm_90a")
        if value and value.rstrip("af") not in ARCHITECTURES:
            raise self._stated.error("arch", f"unknown architecture {value!r}; known: {', '.join(ARCHITECTURES)}")
        return value

    def written_anew(self) -> tuple[str, ...]:
        """Return the stated architectures for which gemmlab rewrites the main loop in its package's machine code."""
        names = self.texts("written_anew")
        for name in names:
            if name not in ARCHITECTURES:
                raise self._stated.error("written_anew", f"{name!r} is none of {', '.join(ARCHITECTURES)}", name)
        return tuple(names)

    def precision(self) -> str:
        """Return the precision that is stated; empty if none is."""
        value = self.text("precision")
        if value and value not in _PRECISIONS:
            raise self._stated.error("precision", f"{value!r} is none of {', '.join(_PRECISIONS)}")
        return value

    def after(self) -> str | None:
        value = self._stated.get("after")
        if value is not None and not (isinstance(value, str) and (not value or _ID.fullmatch(value))):
            raise self._stated.error("after", f'{value!r} is no id of a rung, as "naive", nor "" for the first rung')
        known: str | None = value
        return known

    def flag(self, key: str) -> bool:
        value = self._stated.get(key)
        if value is not None and not isinstance(value, bool):
            raise self._stated.error(key, f"{value!r} is neither true nor false")
        return value is True

    def condition(self, key: str, known: Iterable[str]) -> Expression:
        """Return a key's `true`, `false` or expression over the `known` names, as an expression.

        The expression is false if the key is not stated.
        """
        value = self._stated.get(key)
        if value is None or isinstance(value, bool):
            return parse("1" if value else "0")
        if not isinstance(value, str):
            raise self._stated.error(key, f"{value!r} is neither true, false nor an expression")
        return self.expression(key, value, known)

    def aliases(self) -> tuple[str, ...]:
        names = self.texts("aliases")
        for name in names:
            if not _ID.fullmatch(name):
                raise self._stated.error("aliases", f"{name!r} is no id of a kernel", name)
        return tuple(names)

    def params(self, names: OpNames) -> dict[str, int]:
        params = self._table("params")
        for name, value in params.items():
            if name in names.in_expressions:
                raise self._stated.error("params", f"{name} is a value of the problem and no parameter", name)
            if not _PARAMETER.fullmatch(name):
                raise self._stated.error("params", f"{name!r}: parameters are named in capitals, as BM", name)
            if not (_is_whole(value) and abs(value) <= _LARGEST_PARAMETER):
                raise self._stated.error("params", f"{name} = {value!r} is not a whole number of 32 bits", name)
        return params

    def name_parts(self, names: OpNames) -> None:
        """Read `let`, names for parts of expressions. Every expression that is read after this call may use them, and
        each part may use the parts before it.
        """
        for name, text in self._table("let").items():
            if not _PART.fullmatch(name):
                raise self._stated.error("let", f"{name!r}: parts are named in small letters, as tiles", name)
            if name in names.in_expressions or name in _TAKEN:
                raise self._stated.error("let", f"{name} has a meaning already", name)
            if not isinstance(text, str):
                raise self._stated.error("let", f"{name} = {text!r} is not an expression", name)
            self._parts[name] = f"({self._spelled_out(text)})"

    def _spelled_out(self, text: str) -> str:
        """Return an expression in which each name of `let` is replaced by its part."""
        return re.sub(r"(?<![\w.])[a-z][a-z0-9_]*(?![\w.])", lambda found: self._parts.get(found[0], found[0]), text)

    def ranges(self, key: str, params: Config) -> dict[str, tuple[int, ...]]:
        """Return the values of a table such as `tune`, by parameter; empty if the key is not stated."""
        table = self._table(key)
        for name, values in table.items():
            if name not in params:
                raise self._stated.error(key, f"{name} is not in params ({', '.join(params) or 'none'})", name)
            if not (isinstance(values, list) and values and all(map(_is_whole, values))):
                raise self._stated.error(key, f"{name} = {values!r} is not a list of whole numbers", name)
            if len(set(values)) < len(values):
                raise self._stated.error(key, f"{name} = {values!r} has a value twice", name)
        combinations = math.prod(len(values) for values in table.values())
        if combinations > _MOST_COMBINATIONS:
            raise self._stated.error(key, f"{combinations} combinations, legal or not; at most {_MOST_COMBINATIONS}")
        return {name: tuple(values) for name, values in table.items()}

    def texts(self, key: str) -> list[str]:
        value = self._stated.get(key)
        if value is None:
            return []
        listed = [value] if isinstance(value, str) else value
        if not (isinstance(listed, list) and all(isinstance(text, str) for text in listed)):
            raise self._stated.error(key, f"{value!r} is not a list of texts")
        return listed

    def number_or_text(self, key: str) -> int | str:
        value = self._stated.get(key)
        if value is None:
            return 0
        if not (_is_whole(value) or isinstance(value, str)):
            raise self._stated.error(key, f"{value!r} is neither a whole number nor an expression")
        checked: int | str = value
        return checked

    def expression(self, key: str, text: int | str, known: Iterable[str] | None) -> Expression:
        """Return a parsed expression, the value of `key` or a part of it.

        It may use the `known` names, or any names if `known` is `None`.
        """
        hint = ""
        try:
            expression = parse(self._spelled_out(str(text)))
            if known is not None:
                known = [*known]
                require_no_macro(self._text, expression, known)
                # Without `op` the operation is gemm, which alone has leading dimensions: another one may be meant.
                if self._stated.get("op") is None and "lda" in known:
                    hint = f". {other_operation('gemm')}"
                expression.check_names(known)
        except UsageError as error:
            raise self._stated.error(key, f"{error}{hint}", text) from None
        return expression

    def dimensions(self, key: str, known: Iterable[str]) -> tuple[Expression, ...]:
        """Return one to three expressions: `32`, `"a, b"` or `["a", 32]`; none if the key is not stated."""
        value = self._stated.get(key)
        if value is None:
            return ()
        listed = split(value) if isinstance(value, str) else value if isinstance(value, list) else [value]
        if not all(_is_whole(part) or isinstance(part, str) for part in listed) or not 1 <= len(listed) <= 3:
            raise self._stated.error(key, f"{value!r} is not one to three numbers or expressions")
        return tuple(self.expression(key, part, known) for part in listed)

    def again(self, names: OpNames) -> dict[str, str]:
        """Return `again`, such as `{ N = "blocks", x = "out" }`, with the extent in small letters; empty if not stated.

        In the next launch, the extent is the number of blocks of this one, and the input is its output.
        """
        table = self._table("again")
        counts = [name for name, value in table.items() if name.lower() in names.extents and value == "blocks"]
        moved = [name for name, value in table.items() if name in names.operands and value in names.operands]
        if table and not (len(table) == 2 and len(counts) == len(moved) == 1):
            what = "an extent that becomes blocks and an operand that becomes another"
            raise self._stated.error("again", f'{table!r} is not {what}, as {{ N = "blocks", x = "out" }}')
        return {**dict.fromkeys((name.lower() for name in counts), "blocks"), **{name: table[name] for name in moved}}

    def phases(self, known: Iterable[str]) -> Expression:
        if self._stated.get("phases") is not None and self._stated.get("again") is not None:
            raise self._stated.error("phases", "a kernel that is launched again on its results has no phases (again)")
        value = self.number_or_text("phases") if self._stated.get("phases") is not None else 1
        if _is_whole(value) and int(value) < 1:
            raise self._stated.error("phases", f"{value} launches; at least 1 is possible")
        return self.expression("phases", value, known)

    def optional(self, key: str, known: Iterable[str]) -> Expression | None:
        value = self.number_or_text(key)
        return self.expression(key, value, known) if value else None

    def memory(self, key: str, known: Iterable[str]) -> Expression | None:
        found = self.optional(key, known)
        if found is not None and self._stated.get("again") is not None:
            raise self._stated.error(key, "a kernel with `again` has a workspace already")
        return found

    def align(self) -> int:
        value = self._stated.get("align")
        if value is None:
            return 0
        if not (_is_whole(value) and value in (4, 8, 16, 32, 64, 128, 256, 512)):
            raise self._stated.error("align", f"{value!r} is not a power of two from 4 to 512 (bytes)")
        checked: int = value
        return checked

    def always_reads(self, names: OpNames) -> tuple[str, ...]:
        read = [name.strip().lower() for text in self.texts("always_reads") for name in text.split(",")]
        for name in read:
            if name not in names.factors:
                known = ", ".join(map(str.upper, names.factors)) or "none"
                what = f"{name!r} is no operand of {names.op} with a factor ({known})"
                raise self._stated.error("always_reads", what, name)
        return tuple(name for name in names.factors if name in read)

    def cooperative(self) -> bool:
        """Return whether all blocks are resident together."""
        together = self.flag("cooperative")
        if together and self.flag("early"):
            raise self._stated.error("cooperative", "launches of a cooperative kernel cannot begin early (early)")
        return together

    def constants(self, known: Iterable[str]) -> dict[str, tuple[Expression | float, ...]]:
        """Return the numbers of each `__constant__` variable; expressions may use the `known` names."""
        names, found = [*known], dict[str, tuple[Expression | float, ...]]()
        for name, value in self._table("constants").items():
            if not _ID.fullmatch(name):
                raise self._stated.error("constants", f"{name!r} is no name of a variable", name)
            listed = value if isinstance(value, list) else [value]
            numbers = all(isinstance(part, int | float | str) and not isinstance(part, bool) for part in listed)
            if not (listed and numbers):
                what = "neither a number, an expression nor a list of these"
                raise self._stated.error("constants", f"{name} = {value!r} is {what}", name)
            found[name] = tuple(
                self.expression("constants", part, names) if isinstance(part, str) else part for part in listed
            )
        return found

    def layouts(self) -> tuple[str, ...]:
        stated = self.texts("transposes") or ["nn"]
        for layout in stated:
            if layout not in LAYOUTS:
                raise self._stated.error("transposes", f"{layout!r} is none of {', '.join(LAYOUTS)}", layout)
        return tuple(layout for layout in LAYOUTS if layout in stated)

    def args(self) -> tuple[str, ...] | None:
        value = self._stated.get("args")
        if value is None:
            return None
        return tuple(split(value)) if isinstance(value, str) else tuple(self.texts("args"))

    def options(self) -> tuple[tuple[HeaderValues, tuple[str, ...]], ...]:
        """Return each statement of `options` with its texts: all of them count."""
        found = []
        for one in self._stated.apart("options"):
            value = one.get("options")
            texts = [value] if isinstance(value, str) else value
            if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
                raise one.error("options", f'{value!r} is not a list of texts, as ["-Icommon", "-DN=4"]')
            found.append((one, tuple(texts)))
        return tuple(found)

    def expect(self, op: str, params: Config) -> tuple[Expectation, ...]:
        value = self._stated.get("expect")
        listed = [] if value is None else value if isinstance(value, list) else [value]
        return tuple(self._expectation(item, op, params) for item in listed)

    def _expectation(self, item: Any, op: str, params: Config) -> Expectation:
        table = {"that": item} if isinstance(item, str) else item
        if not isinstance(table, dict) or not isinstance(table.get("that"), str):
            raise self._stated.error("expect", f'{item!r} is neither a text nor a table with `that = "..."`')
        that = table["that"]
        if unknown := sorted(set(table) - {"that", "shape", "config"}):
            raise self._stated.error("expect", f"{unknown[0]!r}: a table has that, shape and config", that)
        shape, config = table.get("shape", DEFAULT_SHAPE), table.get("config", {})
        try:
            (_problem,) = find_op(op).parse_sizes(shape if isinstance(shape, str) else "")
        except ValueError as error:
            raise self._stated.error("expect", f"shape {shape!r} is not one size ({error})", that) from None
        if not (isinstance(config, dict) and all(map(_is_whole, config.values())) and set(config) <= set(params)):
            raise self._stated.error("expect", f"config {config!r} does not fit the parameters {dict(params)}", that)
        # Only the device knows the names of its counters, so they are looked up when the statement is checked.
        expression = self.expression("expect", that, None)
        return Expectation(expression, shape, config, self._stated.where("expect", that))

    def _table(self, key: str) -> dict[str, Any]:
        value = self._stated.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._stated.error(key, f"{value!r} is not a table, as {{ BM = 32 }}")
        return dict(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
