"""The kernel page: source, PTX and machine code of one kernel with its figures, or of two side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gemmlab.analysis.explanation import explain
from gemmlab.analysis.listing.alignment import align
from gemmlab.analysis.listing.kernel_listing import Listing, explained_listing
from gemmlab.analysis.listing.pins import Pin
from gemmlab.analysis.subject import machine
from gemmlab.core.errors import UsageError
from gemmlab.core.words import assignments
from gemmlab.kernels.by_name import kernel_named
from gemmlab.pages.document import document, packed
from gemmlab.pages.listing_json import packed_json, pairs_json
from gemmlab.pages.studies import Request

MOST_SIDES = 2
_DIGITS = 12
"""Digits of a digest that the page shows."""


def kernel_page(listings: Sequence[Listing]) -> bytes:
    """Return the page of one listing, or of two with their instructions aligned, as one HTML file in UTF-8.

    Raises `UsageError` for another number of listings.
    """
    if not 1 <= len(listings) <= MOST_SIDES:
        raise UsageError(f"{len(listings)} kernels: a page shows one, or two side by side")
    pairs = ""
    if len(listings) == MOST_SIDES:
        found = align(listings[0].code.rows, listings[1].code.rows)
        pairs = packed(json.dumps(pairs_json(found), separators=(",", ":")))
    names = [_name(listing) for listing in listings]
    return document(
        "kernel_page.html", ["kernel_page.css"], ["kernel_picture.js", "kernel_page.js"],
        title=" and ".join(names), names=names, listings=listings, heads=[_head(listing) for listing in listings],
        notes=list(dict.fromkeys(note for listing in listings for note in listing.notes)),
        pinned=_pinned(listings), pairs=pairs, labels=_labels(listings),
        packed_listings=[packed(json.dumps(packed_json(one), separators=(",", ":"))) for one in listings],
    )  # fmt: skip


def page_of(request: Request) -> bytes:
    """Explain the kernel of a request, and return its page.

    Raises `CompileError`, `UsageError`, `MemoryError`.
    """
    arch, model = machine(request.arch, request.gpu)
    return kernel_page([explained_listing(explain(kernel_named(request.kernel), arch, model, dict(request.config)))])


def _name(listing: Listing) -> str:
    code = listing.code
    return " ".join(filter(None, (code.title, assignments(code.config), f"({code.arch})")))


def _labels(listings: Sequence[Listing]) -> list[str]:
    """Return a short name of each side: the kernel's name, and if two kernels have one name, what differs.

    That is parameters and architecture, or if these are equal, the beginning of the code's digest.
    """
    codes = [listing.code for listing in listings]
    if len({code.title for code in codes}) == len(codes):
        return [code.title for code in codes]
    names = sorted({name for code in codes for name in code.config})
    differ = [name for name in names if len({code.config.get(name) for code in codes}) > 1]
    arch = len({code.arch for code in codes}) > 1
    labels = [
        " ".join([code.title, *(f"{name}={code.config[name]}" for name in differ if name in code.config),
                  *([code.arch] if arch else [])])
        for code in codes
    ]  # fmt: skip
    return labels if len(set(labels)) == len(labels) else [f"{code.title} {code.digest[:6]}" for code in codes]


def _head(listing: Listing) -> list[tuple[str, str]]:
    code = listing.code
    registers = f"{code.registers} a thread, at most {code.most_live} of them occupied" if code.registers else ""
    return [
        ("kernel", _name(listing)), ("compiler", f"{code.compiler}, code {code.digest[:_DIGITS]}"),
        ("instructions", f"{len(code.rows):,}"), *([("registers", registers)] if registers else []), *listing.facts,
    ]  # fmt: skip


def _pinned(listings: Sequence[Listing]) -> list[tuple[int, int, Pin]]:
    """Return (side, number of the pin on that side, pin), hazards of both sides first."""
    found = [(side, number, pin) for side, listing in enumerate(listings) for number, pin in enumerate(listing.pins)]
    return sorted(found, key=lambda one: one[2].kind != "hazard")
