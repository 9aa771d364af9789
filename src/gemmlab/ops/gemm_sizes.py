"""The command line's grammar for products: the sizes of `ops/sizes.py`, with batches and options.

`16*512x64x512` is a batch of 16. Options follow after colons, in any order: a layout (`128x4096x4096:nt`); the number
of elements between a row's end and the next row (`1024:lda+4`, `1024:ld+1` for all three operands); in a batch `a0` or
`b0`, if all products share this matrix (`16*512x64x512:b0`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem
from gemmlab.ops.sizes import LARGEST_EXTENT, MOST_SIZES, parse_sizes

_BATCH = re.compile(r"([0-9]{1,10})\s*\*(.*)\Z")
_PADDING = re.compile(r"(ld[abc]?)\+([0-9]{1,9})\Z")
_LD = ("lda", "ldb", "ldc")
_SHARED = ("a0", "b0")
_OPTIONS = f"{', '.join(LAYOUTS)}; lda+4, ldb+4, ldc+4 or ld+4; in a batch a0 or b0"


@dataclass(frozen=True, slots=True)
class Products:
    """A product with alpha 1 and beta 0, or a batch of `batch` products like it."""

    problem: GemmProblem
    batch: int = 1
    shared: str = ""
    """`"a"` or `"b"` if all products of the batch share that matrix, else empty."""


def parse_products(text: str) -> list[Products]:
    """Return the products that a text names, in its order, without repeats.

    Raises `UsageError` that names the malformed part, or for more than `MOST_SIZES` products.
    """
    found: dict[Products, None] = {}
    for raw in text.split(","):
        part = raw.strip()
        found |= dict.fromkeys(_part(part))
        if len(found) > MOST_SIZES:
            raise UsageError(f"size {part!r}: more than {MOST_SIZES} sizes in all; use a larger step")
    return list(found)


def _part(part: str) -> list[Products]:
    pieces = [piece.strip() for piece in part.split(":")]
    first = next((at for at, piece in enumerate(pieces) if at and piece[:1].isalpha()), len(pieces))
    sizes = ":".join(pieces[:first])
    batched = _BATCH.match(sizes)
    batch, sizes = (int(batched[1]), batched[2]) if batched else (1, sizes)
    if not 1 <= batch <= LARGEST_EXTENT:
        raise UsageError(f"size {part!r}: a batch has 1 to {LARGEST_EXTENT} products, not {batch}")
    chosen: dict[str, str | int] = {}
    for piece in pieces[first:]:
        values = _option(part, piece.lower(), batch)
        if twice := [name for name in values if name in chosen]:
            raise UsageError(f"size {part!r}: {piece} gives {twice[0]} a second time")
        chosen |= values
    layout, shared = str(chosen.pop("layout", "nn")), str(chosen.pop("shared", ""))
    padding = {name: int(more) for name, more in chosen.items()}
    return [
        Products(_padded(GemmProblem(m, n, k).with_layout(layout), padding), batch, shared)
        for m, n, k in parse_sizes(sizes, 3)
    ]


def _option(part: str, option: str, batch: int) -> dict[str, str | int]:
    """Return the value that an option sets: `layout`, `shared`, or the elements added to leading dimensions by name.

    `part` is the whole size, for errors.
    """
    if option in LAYOUTS:
        return {"layout": option}
    if option in _SHARED and batch > 1:
        return {"shared": option[0]}
    if option in _SHARED:
        raise UsageError(f"size {part!r}: {option} is for a batch, as in 16*512x64x512:{option}")
    padding = _PADDING.match(option)
    if padding is None:
        raise UsageError(f"size {part!r}: {option!r} is no option; options are {_OPTIONS}")
    return {name: int(padding[2]) for name in _LD if name.startswith(padding[1])}


def _padded(problem: GemmProblem, padding: dict[str, int]) -> GemmProblem:
    return replace(problem, **{name: getattr(problem, name) + more for name, more in padding.items()})
