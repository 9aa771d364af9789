"""Conversion of a table of the HTML pages to one that a notebook shows."""

from __future__ import annotations

from gemmlab.core.notebook_view import Grid
from gemmlab.pages.tables import Table


def grid_of(table: Table) -> Grid:
    """Return a table's texts as a grid, with the places of the cells that are marked as wrong."""
    return Grid(
        table.headings, tuple(tuple(cell.text for cell in row) for row in table.rows), table.texts, table.caption,
        frozenset((place, column) for place, row in enumerate(table.rows) for column, cell in enumerate(row)
                  if cell.wrong),
    )  # fmt: skip
