"""The run of a product in pieces: while a piece is multiplied, the panels of the next one are copied in and the
previous piece is copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.pieces.block_sources import Block, Source
from gemmlab.pieces.carrier import Carrier
from gemmlab.pieces.route import Step, route

Progress = Callable[[int, int], object]
Place = tuple[int, int]
"""The row and the column of a piece among all pieces."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """The matrices of a product, as they are stored."""

    a: Source
    b: Source
    out: Source
    c: Source | None = None
    """The matrix to add, times beta; `None` if it is not read."""


def piece_block(plan: PiecePlan, row: int, col: int) -> Block:
    """Return the block of C that the piece in row `row` and column `col` of all pieces makes up."""
    rows, cols = plan.extents(row, col)
    return Block(row * plan.rows, rows, col * plan.cols, cols)


def launched_block(plan: PiecePlan, row: int, col: int) -> Block:
    """Return the block of C that is computed for the piece in row `row` and column `col` of all pieces."""
    (first_row, rows), (first_col, cols) = plan.launched(row, col)
    return Block(first_row, rows, first_col, cols)


def run_pieces(
    plan: PiecePlan, matrices: Matrices, carrier: Carrier, *, done: Collection[Place] = (),
    complete: Callable[[int, int], None] = lambda _row, _col: None, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Compute all pieces except those that are `done`.

    `complete` is called with row and column of each piece once it is in the result, in the order of the run, perhaps in
    another thread. `progress` is called in this thread with the number of complete pieces, those in `done` included,
    and that of all. An error that either function raises ends the run.
    """
    finished: SimpleQueue[Place] = SimpleQueue()
    count = len(done)

    def report() -> None:
        nonlocal count
        while not finished.empty():
            finished.get()
            count += 1
            if progress is not None:
                progress(count, plan.count)

    def completed(row: int, col: int) -> None:
        complete(row, col)
        finished.put((row, col))

    if progress is not None:
        progress(count, plan.count)
    steps = route(plan, done)
    step = next(steps, None)
    if step is not None:
        _load(plan, matrices, carrier, step)
    while step is not None:
        carrier.multiply(step)
        after = next(steps, None)
        if after is not None:
            _load(plan, matrices, carrier, after)
        place = step.row, step.col
        piece, launch = piece_block(plan, *place), launched_block(plan, *place)
        at = piece.row - launch.row, piece.col - launch.col
        carrier.store(step.slots[2], at, matrices.out, piece, partial(completed, *place))
        report()
        step = after
    carrier.finish()
    report()


def _load(plan: PiecePlan, matrices: Matrices, carrier: Carrier, step: Step) -> None:
    sources: Mapping[str, Source] = {"a": matrices.a, "b": matrices.b}
    for name, panel, slot, part, parts in step.loads:
        axis = "ab".index(name)
        at = (panel, 0) if name == "a" else (0, panel)
        launch, padded = launched_block(plan, *at), plan.computed(*at)[axis]
        first, extent = (launch.row, launch.rows) if name == "a" else (launch.col, launch.cols)
        # A has k along its columns and B along its rows, unless they are stored transposed.
        along_rows = (name == "a") != plan.turned[axis]
        block = Block(first, extent, 0, plan.k) if along_rows else Block(0, plan.k, first, extent)
        start, stop = (_bound(sources[name], block, each, parts) for each in (part, part + 1))
        carrier.load(
            name, slot, sources[name], block._replace(row=block.row + start, rows=stop - start), row=start,
            clear=padded > extent and not part,
        )  # fmt: skip
    if matrices.c is not None:
        launch = launched_block(plan, step.row, step.col)
        wider = plan.computed(step.row, step.col) != (launch.rows, launch.cols)
        carrier.load("c", step.slots[2], matrices.c, launch, row=0, clear=wider)


def _bound(source: Source, block: Block, part: int, parts: int) -> int:
    """Return the row of a block at which part number `part` of `parts` begins; chunks of a store stay whole."""
    if part == parts:
        return block.rows
    chunk = 1 if source.chunks is None else max(1, source.chunks[0])
    return max(0, (block.row + block.rows * part // parts) // chunk * chunk - block.row)
