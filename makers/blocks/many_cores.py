"""Blocks of docs/many-cores.md: a core's measured constants, and the efficiency that they predict on many cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import if_there
from scaling.model import BEFORE, GRID, NOW, Constants, Machine, Product, forecast

SCHEMA = "gemmlab.many-cores/1"
RECORD = "cpu-intel-6-167/many-cores.json"
CORES = (2, 4, 8, 16, 32, 64, 128)
PRODUCTS = (
    *(Product(size, size, size) for size in (512, 1024, 2048, 4096, 8192)),
    Product(4096, 64, 4096), Product(64, 4096, 4096), Product(4096, 4096, 4096, "columns"),
    Product(1024, 1024, 1024, "gaps"), Product(4096, 256, 4096, "gaps"), Product(4096, 4096, 4096, "gaps"),
)  # fmt: skip
_LAYOUTS = {"rows": "", "columns": ", B in columns", "gaps": ", B with gaps"}


def constants_table(record: Mapping[str, Any]) -> str:
    """Return a table of a core's constants, in nanoseconds and in multiply-adds."""
    of = Constants(**record["constants"])
    rows = [
        ("a multiply-add", of.multiply_add), ("an element of A, brought into the core's caches", of.a_element),
        ("an element of B in rows, brought and packed", of.b_element["rows"]),
        ("... in columns", of.b_element["columns"]), ("... with gaps between its elements", of.b_element["gaps"]),
        ("a turn of the pool, for each thread beside the caller", of.turn),
    ]  # fmt: skip
    lines = [[name, f"{ns:.4g}", f"{ns / of.multiply_add:,.0f}"] for name, ns in rows]
    when = str(record["environment"].get("time_utc", ""))[:10]
    return (
        f"{markdown_table(['', 'ns', 'multiply-adds'], lines)}\n\nLeast times in {record['seconds']:.0f} seconds on "
        f"{record['device']['name']}, {record['device']['cores']} cores, {when}, gemmlab "
        f"{record['environment'].get('gemmlab', '?')}. The machine did other work, too."
    )


def forecast_table(record: Mapping[str, Any]) -> str:
    """Return a table of each product's predicted efficiency by number of cores, by the former design and the present
    one.
    """
    of = Constants(**record["constants"])
    lines = []
    for product in PRODUCTS:
        cells = [f"{product.m}x{product.n}x{product.k}{_LAYOUTS[product.layout]}"]
        for cores in CORES:
            before, grid, now = (forecast(product, Machine(cores), of, design) for design in (BEFORE, GRID, NOW))
            one, two = (round(100 * found.efficiency(cores)) for found in (before, now))
            mark = f"{'*' if now.together else ''}{'†' if now.limit == 'memory' else ''}"
            same = (before.rows, before.cols) == (grid.rows, grid.cols) and not now.together
            cells.append(f"{two}{mark}" if same else f"{one} → {two}{mark}")
        lines.append(cells)
    table = markdown_table(["m x n x k", *(f"{cores}" for cores in CORES)], lines)
    said = "Percent of the speed of one core times the number of cores; before → after the changes below"
    return f"{table}\n\n{said}. * B packed together. † Memory limits."


BLOCKS: Mapping[str, Callable[[], str]] = {
    "many-cores-constants": if_there(RECORD, SCHEMA, constants_table),
    "many-cores": if_there(RECORD, SCHEMA, forecast_table),
}
