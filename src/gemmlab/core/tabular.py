"""Results that are tables: as rows, as CSV, and as a data frame of pandas or polars."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gemmlab.core.errors import UsageError

PACKAGES = ("pandas", "polars")
"""Packages with data frames; by default the first one that is installed is used."""
Row = dict[str, Any]
"""A row of a table: column -> a number, a text, a truth value or `None`."""


class Tabular:
    """Base class of results that are tables. A subclass defines `rows`; the other forms follow from it."""

    __slots__ = ()

    def rows(self) -> list[Row]:
        """Return a dictionary for each row: column -> a number, a text, a truth value or `None`."""
        raise NotImplementedError

    def to_csv(self) -> str:
        """Return the rows as comma-separated values under a line of column names; `None` is an empty field."""
        return csv_text(self.rows())

    def to_dataframe(self, package: str | None = None) -> Any:
        """Return the rows as a data frame of `package`, `"pandas"` or `"polars"`; by default the first one installed.

        Raises `UsageError` for another package, or if `package` (by default both) is not installed.
        """
        return dataframe(self.rows(), package)


def flat(values: Mapping[str, Any]) -> Row:
    """Return nested values as one row: `{"a": {"b": 1}}` becomes `{"a.b": 1}`, a list its parts joined with `"; "`.

    A value that is no number, text, truth value or `None` becomes its `str`.
    """
    row: Row = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{inner}": cell for inner, cell in flat(value).items()}
        elif isinstance(value, list | tuple):
            row[name] = "; ".join(map(str, value))
        else:
            row[name] = value if value is None or isinstance(value, int | float | str) else str(value)
    return row


def columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of all columns, in order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as comma-separated values under a line of column names, which are in order of first appearance.

    Fields are quoted as in RFC 4180; lines end with a line feed. A missing value or `None` is an empty field.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def dataframe(rows: Sequence[Mapping[str, Any]], package: str | None = None) -> Any:
    """Return rows as a data frame of `package`, by default of the first of `PACKAGES` that is installed.

    Raises `UsageError` for another package, or if `package` (by default each of `PACKAGES`) is not installed.
    """
    if package not in (None, *PACKAGES):
        raise UsageError(f"to_dataframe: package is {package!r}; it must be one of {', '.join(PACKAGES)}")
    found = next((name for name in PACKAGES if package in (None, name) and find_spec(name) is not None), None)
    if found is None:
        raise UsageError(f"to_dataframe: {package or ' or '.join(PACKAGES)} is not installed; `rows()` needs neither")
    names = columns(rows)
    return import_module(found).DataFrame({name: [row.get(name) for row in rows] for name in names})
