"""Listings of machine code as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gemmlab.analysis.listing.alignment import CHANGED, LEFT, SAME, Pair
from gemmlab.analysis.listing.code import Row, Span
from gemmlab.analysis.listing.kernel_listing import Listing
from gemmlab.core.words import assignments, printable
from gemmlab.sass.instruction import SourceLine

_NONE = 7
_MARKS = {SAME: " ", CHANGED: "~", LEFT: "<", "right": ">"}
_WIDE = 64
"""Characters of a line of one side of a comparison."""
_AROUND = 3
"""Instructions that are shown before and after each difference."""


def control_codes(row: Row) -> str:
    """Return control codes in the notation of maxas, `wait:read:write:yield:stall`."""
    control = row.instruction.control
    waits = f"{control.wait_mask:02x}" if control.wait_mask else "--"
    read, write = ("-" if barrier == _NONE else str(barrier) for barrier in (control.read_barrier,
                                                                             control.write_barrier))  # fmt: skip
    return f"{waits}:{read}:{write}:{'-' if control.yield_ else 'Y'}:{control.stall:x}"


def head(listing: Listing) -> str:
    """Return the lines that say which code is listed."""
    code = listing.code
    registers = f", {code.registers} registers a thread, {code.most_live} occupied at most" if code.registers else ""
    title = f"{code.title} {assignments(code.config)}".strip()
    facts = [f"  {name}: {text}" for name, text in listing.facts]
    size = f"  {code.arch} code ({code.compiler}), {len(code.rows):,} instructions{registers}"
    lines = [title, size, *facts, *(f"  {note}" for note in listing.notes)]
    return "\n".join(map(printable, lines))


def lines(listing: Listing, *, ptx: bool, only_loops: bool) -> Iterator[str]:
    """Yield the listing: a line for each instruction, and comments with source places, loops, and PTX if `ptx`.

    With `only_loops`, instructions outside of loops are left out.
    """
    columns = [one for one in listing.columns if one.values]
    texts = {(source.file, number): text for source in listing.sources for number, text in source.lines}
    banks = max((len("+".join(map(str, row.banks))) for row in listing.code.rows), default=5)
    names = "".join(f"  {one.title:>10}" for one in columns)
    yield f"{'address':>8}  {'w:r:w:y:st':<11} live  {'banks':<{max(5, banks)}}{names}"
    if ptx and not listing.code.ptx:
        yield "; the code carries no PTX"
    place: tuple[SourceLine, ...] = ()
    at = 0
    for row in listing.code.rows:
        if only_loops and not row.depth:
            continue
        yield from _loop_starts(listing.code.loops, row)
        if row.places != place:
            place = row.places
            yield f"; {_where(place)}{_source_text(texts.get(place[0], '') if place else '')}"
        if ptx and row.ptx_line != at:
            at = row.ptx_line
            if 0 < at <= len(listing.code.ptx):
                yield f";     ptx {at}: {printable(' '.join(listing.code.ptx[at - 1].split()))}"
        figures = "".join(
            f"  {row_value:>10,.{one.digits}f}" if (row_value := one.values.get(row.address)) is not None
            else " " * 12
            for one in columns
        )  # fmt: skip
        conflict = "!" if row.conflict_cycles else " "
        yield (
            f"{row.address:#8x}  {control_codes(row):<11} {row.live:>4}  "
            f"{'+'.join(map(str, row.banks)):<{max(5, banks)}}{conflict}{figures[1:]} "
            f"{'|' * row.depth}{' ' if row.depth else ''}{row.instruction.text}"
        )


def comparison(left: Listing, right: Listing, pairs: Sequence[Pair], *, everything: bool) -> Iterator[str]:
    """Yield two listings side by side, with a mark between them.

    Without `everything`, only the differences with `_AROUND` instructions around them; the others are counted.
    """
    near = set(range(len(pairs))) if everything else _near(pairs)
    skipped = 0
    for place, pair in enumerate(pairs):
        if place not in near:
            skipped += 1
            continue
        if skipped:
            yield f"{'':8}  ... {skipped:,} alike"
            skipped = 0
        first = "" if pair.left is None else _side(left.code.rows[pair.left])
        second = "" if pair.right is None else _side(right.code.rows[pair.right])
        yield f"{first:<{_WIDE}} {_MARKS[pair.kind]} {second}".rstrip()
    if skipped:
        yield f"{'':8}  ... {skipped:,} alike"


def tally(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return the number of pairs by kind."""
    return {kind: sum(pair.kind == kind for pair in pairs) for kind in _MARKS}


def _side(row: Row) -> str:
    return f"{row.address:#8x} {control_codes(row)} {row.instruction.text}"[:_WIDE]


def _near(pairs: Sequence[Pair]) -> set[int]:
    differ = [place for place, pair in enumerate(pairs) if pair.kind != SAME]
    return {near for place in differ for near in range(place - _AROUND, place + _AROUND + 1)}


def _loop_starts(loops: Sequence[Span], row: Row) -> Iterator[str]:
    for span in loops:
        if span.first == row.address:
            count = (span.last - span.first) // 16 + 1
            yield f"; loop {span.first:#x} to {span.last:#x}, depth {span.depth}, {count:,} instructions"


def _where(places: Sequence[SourceLine]) -> str:
    """Return `fragment.cuh:11 called from mine.cu:43`: the line, and the calls by which it was inlined."""
    return " called from ".join(f"{printable(PurePath(file).name)}:{line}" for file, line in places) or "no source line"


def _source_text(text: str) -> str:
    return f"    {printable(text.strip())}" if text.strip() else ""
