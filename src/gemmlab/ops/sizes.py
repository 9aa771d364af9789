"""The command line's size grammar: `256`, `256,512`, `256:4096:128`, `2^20`, `MxNxK` and mixtures of them.

Commas separate sizes. A range START:STOP:STEP includes STOP if the steps reach it exactly. A single extent stands for
every dimension of the operation.
"""

from __future__ import annotations

import re

from gemmlab.core.errors import UsageError

LARGEST_EXTENT = 2**31 - 1
MOST_SIZES = 4096
_NUMBER = re.compile(r"[0-9]{1,13}\Z")
_POWER = re.compile(r"2\^([0-9]{1,2})\Z")


def parse_sizes(text: str, dimensions: int, largest: int = LARGEST_EXTENT) -> list[tuple[int, ...]]:
    """Return the shapes that a text names, in its order, without repeats. Each has `dimensions` extents up to
    `largest`.

    Raises `UsageError` that names the malformed part, or for more than `MOST_SIZES` shapes.
    """
    shapes: dict[tuple[int, ...], None] = {}
    for raw in text.split(","):
        part = raw.strip()
        if not part:
            raise UsageError(f"size {text!r}: empty part; write sizes as 256, 256,512, 256:4096:128 or "
                             f"{_names(dimensions)}")  # fmt: skip
        if ":" in part:
            for extent in _range(part, largest):
                shapes[(extent,) * dimensions] = None
        elif "x" in part.lower():
            extents = tuple(_extent(piece, part, largest) for piece in part.lower().split("x"))
            if len(extents) != dimensions:
                raise UsageError(f"size {part!r}: {len(extents)} extents, expected {dimensions} ({_names(dimensions)})")
            shapes[extents] = None
        else:
            shapes[(_extent(part, part, largest),) * dimensions] = None
        if len(shapes) > MOST_SIZES:
            raise UsageError(f"size {part!r}: more than {MOST_SIZES} sizes in all; use a larger step")
    return list(shapes)


def _range(part: str, largest: int) -> range:
    pieces = part.split(":")
    if len(pieces) != 3:
        raise UsageError(f"size {part!r}: a range is START:STOP:STEP, as in 256:4096:128")
    start, stop, step = (_extent(piece, part, largest) for piece in pieces)
    if step < 1:
        raise UsageError(f"size {part!r}: the step must be at least 1")
    if stop < start:
        raise UsageError(f"size {part!r}: STOP {stop} lies below START {start}")
    if (stop - start) // step >= MOST_SIZES:
        raise UsageError(f"size {part!r}: more than {MOST_SIZES} sizes; use a larger step")
    return range(start, stop + 1, step)


def _extent(piece: str, part: str, largest: int) -> int:
    piece = piece.strip()
    power = _POWER.match(piece)
    if not (power or _NUMBER.match(piece)):
        raise UsageError(f"size {part!r}: {piece!r} is not a whole number of at least 0")
    value = 1 << int(power[1]) if power else int(piece)
    if value > largest:
        raise UsageError(f"size {part!r}: {piece} is above the largest extent {largest}")
    return value


def _names(dimensions: int) -> str:
    return {1: "N", 2: "MxN", 3: "MxNxK"}.get(dimensions, "x".join(["N"] * dimensions))
