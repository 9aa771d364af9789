"""A page's tables as a notebook shows them."""

from __future__ import annotations

from gemmlab.core.notebook_view import Grid
from gemmlab.pages.tables import Table


def grid_of(table: Table) -> Grid:
    """Return the texts of a table, with the cells that are wrong."""
    return Grid(
        table.headings, tuple(tuple(cell.text for cell in row) for row in table.rows), table.texts, table.caption,
        frozenset((place, column) for place, row in enumerate(table.rows) for column, cell in enumerate(row)
                  if cell.wrong),
    )  # fmt: skip
