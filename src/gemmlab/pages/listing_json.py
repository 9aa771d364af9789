"""A listing as plain JSON values: for `gemmlab sass --json`, and, column by column, for the script of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gemmlab.analysis.listing.alignment import Pair
from gemmlab.analysis.listing.code import Code
from gemmlab.analysis.listing.code import Row as CodeRow
from gemmlab.analysis.listing.figure_columns import Column
from gemmlab.analysis.listing.kernel_listing import Listing
from gemmlab.analysis.listing.pictures import LanePicture
from gemmlab.analysis.listing.pins import Pin
from gemmlab.core.tabular import Row, flat


def to_json(listing: Listing) -> dict[str, Any]:
    """Return the listing with one object per instruction."""
    code = listing.code
    return {
        **_head(code),
        "instructions": [
            {**_row(row), **{one.name: one.values[row.address] for one in listing.columns if row.address in one.values}}
            for row in code.rows
        ],
        "loops": [asdict(span) for span in code.loops],
        "columns": [{"name": c.name, "title": c.title, "about": c.about, "origin": c.origin} for c in listing.columns],
        "pins": [asdict(pin) for pin in listing.pins],
        "notes": list(listing.notes),
    }  # fmt: skip


def instruction_rows(listings: Sequence[Listing]) -> list[Row]:
    """Return a row for each instruction, with its source line and callers.

    With several listings, a row also has the number of its listing (`side`) and the kernel's name.
    """
    rows: list[Row] = []
    for side, listing in enumerate(listings):
        for one in to_json(listing)["instructions"]:
            places = [f"{Path(file).name}:{line}" for file, line in one.pop("places")]
            where = {"line": places[0] if places else None, "called_from": "; ".join(places[1:]) or None}
            first = {"side": side, "kernel": listing.code.title} if len(listings) > 1 else {}
            rows.append({**first, **flat({"address": one.pop("address"), "text": one.pop("text"), **where, **one})})
    return rows


def pairs_json(pairs: Sequence[Pair]) -> list[list[Any]]:
    """Return an alignment as (index on the left or null, index on the right or null, kind)."""
    return [[pair.left, pair.right, pair.kind] for pair in pairs]


def packed_json(listing: Listing) -> dict[str, Any]:
    """Return the listing column by column, which compresses well.

    Files, chains of calls and instructions are referred to by their index.
    """
    code = listing.code
    files = {source.file: place for place, source in enumerate(listing.sources)}
    chains: dict[tuple[tuple[int, int], ...], int] = {}
    of_row = [
        chains.setdefault(tuple((files[file], line) for file, line in row.places), len(chains)) for row in code.rows
    ]
    return {
        **_head(code),
        "mostLive": code.most_live,
        "facts": listing.facts,
        "files": [{"name": source.name, "lines": source.lines} for source in listing.sources],
        "chains": list(chains),
        "rows": {
            "chain": of_row,
            "text": [row.instruction.text for row in code.rows],
            "stall": [row.instruction.control.stall for row in code.rows],
            "yield": [int(not row.instruction.control.yield_) for row in code.rows],
            "write": [row.instruction.control.write_barrier for row in code.rows],
            "read": [row.instruction.control.read_barrier for row in code.rows],
            "wait": [row.instruction.control.wait_mask for row in code.rows],
            "ptx": [row.ptx_line for row in code.rows],
            "live": [row.live for row in code.rows],
            "banks": [list(row.banks) for row in code.rows],
            "conflict": [row.conflict_cycles for row in code.rows],
            "depth": [row.depth for row in code.rows],
        },
        "loops": [[span.first // 16, span.last // 16, span.depth] for span in code.loops],
        "ptx": list(code.ptx),
        "columns": [_column(column, code) for column in listing.columns],
        "pins": [_pin(pin, files) for pin in listing.pins],
        "pictures": _pictures(listing.pictures),
        "notes": list(listing.notes),
    }


def _head(code: Code) -> dict[str, Any]:
    return {
        "kernel": code.title, "config": dict(code.config), "arch": code.arch, "compiler": code.compiler,
        "code_sha256": code.digest, "entry": code.entry, "registers": code.registers,
    }  # fmt: skip


def _row(row: CodeRow) -> dict[str, Any]:
    i, control = row.instruction, row.instruction.control
    return {
        "address": i.address, "text": i.text, "stall": control.stall, "yield": not control.yield_,
        "write_barrier": None if control.write_barrier == 7 else control.write_barrier,
        "read_barrier": None if control.read_barrier == 7 else control.read_barrier,
        "waits": [bit for bit in range(6) if control.wait_mask >> bit & 1], "reuse": control.reuse,
        "places": [list(place) for place in row.places], "ptx_line": row.ptx_line or None, "live": row.live,
        "banks": list(row.banks), "conflict_cycles": row.conflict_cycles, "depth": row.depth, "loop": row.loop,
    }  # fmt: skip


def _column(column: Column, code: Code) -> dict[str, Any]:
    values = [column.values.get(row.address) for row in code.rows]
    return {
        "name": column.name, "title": column.title, "about": column.about, "origin": column.origin,
        "addsUp": column.adds_up, "digits": column.digits,
        "values": [None if value is None else round(value, 4) for value in values],
    }  # fmt: skip


def _pin(pin: Pin, files: dict[str, int]) -> dict[str, Any]:
    return {
        "kind": pin.kind, "key": pin.key, "text": pin.text, "advice": pin.advice, "rung": pin.rung,
        "rows": [address // 16 for address in pin.addresses],
        "lines": [[files[file], line] for file, line in pin.lines if file in files],
    }  # fmt: skip


def _pictures(pictures: Sequence[LanePicture]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in pictures:
        found.setdefault(str(one.address // 16), []).append({
            "space": one.space, "store": one.store, "width": one.width, "warp": one.warp, "offsets": one.offsets,
            "first": one.first, "cost": one.cost, "best": one.best,
            "transfers": [[t.wavefront, t.bank, list(t.lanes), int(t.late)] for t in one.transfers],
        })  # fmt: skip
    return found
