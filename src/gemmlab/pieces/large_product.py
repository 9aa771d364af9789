"""`gemmlab.gemm` in pieces, for matrices larger than a device's memory: its arguments, plan, run and checkpoint."""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gemmlab.arrays.on_host import is_host_array, like
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.version import __version__
from gemmlab.core.words import shown
from gemmlab.devices.device_name import CPU, DeviceName, parse_device
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.request import rows_contiguous
from gemmlab.pieces.array_identity import digest, identity, outlives
from gemmlab.pieces.block_sources import ArraySource, Source, at_once, of_chunks
from gemmlab.pieces.checkpoint import Checkpoint, Place
from gemmlab.pieces.cut import Limits, cut, sized
from gemmlab.pieces.large_request import LargeRequest, large_request
from gemmlab.pieces.piece_devices import PieceDevice, piece_device
from gemmlab.pieces.piece_run import Matrices, Progress, piece_block, run_pieces


def in_pieces(call: Call, device: object, memory_bytes: object, checkpoint: object, progress: Progress | None) -> Any:
    """Return the result of `gemmlab.gemm`, computed in pieces, and raise as it does."""
    name, allowed = _device(device), checked_bytes(memory_bytes)
    path = _path(checkpoint)
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(f"gemm: progress is {shown(progress)}; it must be a function (complete, all)")
    large = large_request(call)
    factors = large.operands.alpha, large.operands.beta
    with piece_device(name) as place:
        choice, frame, limits = place.prepare(call, _frame(large), factors, large.steps)
        frame = replace(frame, memory_bytes=place.room() if allowed is None else allowed)
        if path is not None:
            limits = _resumable(large, call, limits)
        with _journal(path, lambda: _binding(large, call, choice, place)) as journal:
            if journal is None or journal.extents is None:
                plan = cut(frame, limits)
            else:
                plan = sized(frame, limits, *journal.extents, journal.path)
            if plan.count:
                _run(plan, large.matrices, place, choice, call, factors, journal, progress)
    if call.out is not None:
        return call.out
    return like(call.a, large.matrices.out.value) if is_host_array(call.a) else large.matrices.out.value


def checked_bytes(value: object) -> int | None:
    """Return a valid `memory_bytes`, or `None` for `None`. Raises `ArgumentTypeError` and `UsageError`."""
    if value is None:
        return None
    try:
        found = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise ArgumentTypeError(f"gemm: memory_bytes is {shown(value)}, not a whole number") from error
    if found < 1 or isinstance(value, bool):
        raise UsageError(f"gemm: memory_bytes is {shown(value)}; it must be at least 1")
    return found


def _device(value: object) -> DeviceName:
    if value is None:
        return CPU
    if not isinstance(value, str):
        raise ArgumentTypeError(f"gemm: device is {shown(value)}; it must be a name such as 'cpu' or 'cuda:0'")
    try:
        return parse_device(value)
    except DeviceError as error:
        raise DeviceError(f"{error}; only explain_choice takes the model of a GPU") from None


def _path(value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"gemm: checkpoint is {shown(value)}; it must be the path of a file")
    path = Path(value)
    if path.is_dir():
        raise UsageError(f"gemm: checkpoint {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"gemm: checkpoint {path}: there is no folder {path.parent}; make it, or name another file")
    return path


def _frame(large: LargeRequest) -> PiecePlan:
    """Return a plan of one piece, to be cut."""
    (m, n), k = large.operands.shape, large.operands.left.shape[1]
    reads, matrices = bool(k and large.operands.alpha), large.matrices
    a, b = (matrices.a, matrices.b) if reads else (None, None)
    others = [each for each in (matrices.c, matrices.out) if each is not None]
    return PiecePlan(
        m, n, k, max(1, m), max(1, n), by_rows=True, turned=large.turned, reads=reads, reads_c=matrices.c is not None,
        **of_chunks(a, b, others, large.turned),
    )  # fmt: skip


def _resumable(large: LargeRequest, call: Call, limits: Limits) -> Limits:
    """Return limits with which an interrupted run leaves whole pieces: no chunk of a store belongs to two pieces.

    Raises `UsageError` for a product that cannot be resumed.
    """
    out = large.matrices.out
    if call.out is None or not outlives(out):
        raise UsageError(
            "gemm: checkpoint needs an out that outlives this process: a numpy.memmap of mode 'r+' or 'w+', or an "
            "array of a store that is not in memory"
        )
    if large.in_place:
        raise UsageError(
            "gemm: c is out, so a resumed run would find parts of c overwritten; with checkpoint, give c an array "
            "of its own"
        )
    if isinstance(out, ArraySource):
        by_columns = not rows_contiguous(out.matrix) and rows_contiguous(out.matrix.T)
        return replace(limits, flushed=partial(_page_bytes, by_columns))
    if out.chunks is None:
        return limits
    rows, cols = (chunk * max(1, tile // chunk) for tile, chunk in zip(limits.tile, out.chunks, strict=True))
    return replace(limits, tile=(rows, cols))


def _page_bytes(by_columns: bool, plan: PiecePlan) -> int:
    """Return about the bytes of a mapped result's pages, beside a piece, that are written when each piece is flushed.

    Each line of a piece, a row or with `by_columns` a column, has about a page more than its elements.
    """
    down, across = plan.grid
    lines, cuts, pieces = (plan.n, down, across) if by_columns else (plan.m, across, down)
    # Pieces with whole lines share pages only where one begins.
    return mmap.PAGESIZE * (pieces if cuts == 1 else lines * cuts)


def _binding(large: LargeRequest, call: Call, choice: Choice, place: PieceDevice) -> dict[str, Any]:
    """Return the binding of a run: the facts that identify the product."""
    matrices = large.matrices
    operands = {"a": matrices.a, "b": matrices.b} | ({} if matrices.c is None else {"c": matrices.c})
    return {
        "version": __version__, "shape": [*large.operands.shape, large.operands.left.shape[1]],
        "alpha": repr(large.operands.alpha), "beta": repr(large.operands.beta),
        "trans_a": bool(call.trans_a), "trans_b": bool(call.trans_b), "stored": list(large.turned),
        "precision": call.precision, "reproducible": bool(call.reproducible), "kernel": choice.kernel,
        "config": dict(choice.config), "order": choice.order, "device": place.model,
        **{name: identity(source) for name, source in [*operands.items(), ("out", matrices.out)]},
    }  # fmt: skip


@contextmanager
def _journal(path: Path | None, binding: Any) -> Iterator[Checkpoint | None]:
    if path is None:
        yield None
        return
    journal = Checkpoint(path, binding())
    try:
        yield journal
    finally:
        journal.close()


def _run(
    plan: PiecePlan, matrices: Matrices, place: PieceDevice, choice: Choice, call: Call, factors: tuple[float, float],
    journal: Checkpoint | None, progress: Progress | None,
) -> None:  # fmt: skip
    out = matrices.out
    done = {} if journal is None else journal.digests
    if journal is not None:
        _begin(plan, matrices, journal)

    def complete(row: int, col: int) -> None:
        if journal is not None:
            out.flush()
            journal.complete((row, col), _piece_digest(plan, out, (row, col)))

    carrier = place.carrier(plan, choice, call, factors)
    try:
        run_pieces(plan, matrices, carrier, done=frozenset(done), complete=complete, progress=progress)
    finally:
        carrier.close()


def _begin(plan: PiecePlan, matrices: Matrices, journal: Checkpoint) -> None:
    """Begin a journal, or check that operands and complete pieces are those of the run that is resumed.

    Each is read once. Raises `UsageError` if one of them has changed.
    """
    operands = {"a": matrices.a, "b": matrices.b} if plan.reads else {}
    if matrices.c is not None:
        operands["c"] = matrices.c
    contents = {name: digest(source, None, at_once(plan.memory_bytes)) for name, source in operands.items()}
    if journal.extents is None:
        journal.begin(plan.rows, plan.cols, contents)
        return
    journal.require(contents)
    for piece, known in journal.digests.items():
        if _piece_digest(plan, matrices.out, piece) != known:
            raise UsageError(
                f"gemm: {journal.path} says that piece {piece} is complete, but out holds something else there: open "
                "it with its contents (a memmap with mode 'r+'), or remove the journal to begin anew"
            )


def _piece_digest(plan: PiecePlan, out: Source, piece: Place) -> str:
    block = piece_block(plan, *piece)
    return digest(out, block, at_once(FLOAT_BYTES * block.rows * block.cols))
