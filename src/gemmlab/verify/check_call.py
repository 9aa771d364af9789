"""Check `gemmlab.gemm`: the cases of the operation, with every memory layout of a NumPy array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from gemmlab.core.errors import TimeLimitError
from gemmlab.core.time_limit import require_time
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.ops.op import Expected, Float32Array
from gemmlab.verify.case_tally import Progress, Tally
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.elementwise import compare
from gemmlab.verify.views import VIEWS, WRITABLE_VIEWS, View, make_view

GemmCall = Callable[..., Any]
"""Signature: `gemm(a, b, *, alpha, beta, c, out, trans_a, trans_b, threads)` -> the result."""
_OUTPUTS = ("returned", "out", "in place")


@dataclass(frozen=True, slots=True)
class Call:
    """One call to try: the product, the layout of each array, and the destination of the result."""

    problem: GemmProblem
    views: tuple[str, str, str]
    """Layouts (of `VIEWS`) of a, of b, and of c or out."""
    output: str
    """`"returned"` (no `out`), `"out"`, or `"in place"` (`out` is `c`)."""
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """Shapes of the batches of a and of b: the axes before the rows and columns."""

    @property
    def label(self) -> str:
        """The call's layouts, destination and batches in brackets, for messages."""
        batch = f", batches {self.batch[0]} and {self.batch[1]}" if any(self.batch) else ""
        return f" [a {self.views[0]}, b {self.views[1]}, c {self.views[2]}, {self.output}{batch}]"


def check_callable(
    gemm: GemmCall,
    *,
    name: str = "gemmlab.gemm",
    threads: int = 1,
    calls: Sequence[Call] | None = None,
    scale: str = "quick",
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckReport:
    """Make each of `calls` (default: `default_calls`) and check its result as that of a kernel is checked.

    Results must lie within the elementwise bound; inputs and the memory around arrays must not change; memory that must
    not be read holds NaN. With `threads` above 1 the result must have the same bits as with one thread. Raises
    `MemoryError`, before the first call is made, for a call that needs more memory than there is.
    """
    planned = list(calls) if calls is not None else list(default_calls(np.random.default_rng(seed), scale))
    for call in planned:
        require_memory(check_bytes(GemmOp(), call.problem), f"checking size {call.problem.label}")
    tally = Tally(name, "cpu", {}, threads, seed)
    for index, call in enumerate(planned):
        try:
            require_time(name)
        except TimeLimitError as error:
            tally.stop(call.problem.label + call.label, len(planned), error)
            break
        _try(gemm, call, np.random.default_rng([seed, index]), threads, tally)
        if progress:
            progress(index + 1, len(planned))
        if tally.enough:
            break
    return tally.report(len(planned))


def default_calls(rng: np.random.Generator, scale: str = "quick") -> Iterator[Call]:
    """Yield every case of the operation, with destinations and array layouts in rotation (b's layout at random); then
    small products with each layout of each array; then batches.
    """
    inputs, outputs, places = cycle(VIEWS), cycle(WRITABLE_VIEWS), cycle(_OUTPUTS)
    for problem in GemmOp().cases(("nn", "nt", "tn", "tt"), rng, scale):
        place = next(places)
        if place == "in place" and problem.beta == 0.0:
            place = "out"
        third = next(inputs) if place == "returned" else next(outputs)
        yield Call(problem, (next(inputs), VIEWS[int(rng.integers(len(VIEWS)))], third), place)
    shape = GemmProblem(17, 19, 23, 0.5, 1.0)
    for kind in VIEWS:
        yield Call(shape, (kind, "plain", "plain"), "out")
        yield Call(shape, ("plain", kind, "plain"), "out")
        yield Call(shape, ("plain", "plain", kind), "returned")
    for kind in WRITABLE_VIEWS:
        yield Call(shape, ("plain", "plain", kind), "out")
        yield Call(shape, ("plain", "plain", kind), "in place")
        yield Call(GemmProblem(17, 19, 23), ("plain", "plain", kind), "in place")
    for batch in (((3,), (3,)), ((3,), ()), ((), (2,)), ((2, 1), (3,)), ((0,), ()), ((1,), (4,))):
        for beta in (0.0, 1.0):
            yield Call(GemmProblem(17, 9, 12, -1.0, beta), ("plain", "plain", "plain"), "out", batch)
            yield Call(GemmProblem(5, 33, 7, 1.0, beta, trans_a=True), ("fortran", "upside_down", "wide_rows"),
                       "returned", batch)  # fmt: skip


def _try(gemm: GemmCall, call: Call, rng: np.random.Generator, threads: int, tally: Tally) -> None:
    views = _arrays(call, rng)
    a, b, c = views["a"].array, views["b"].array, views["c"].array
    contents = {name: np.array(view.array) for name, view in views.items()}
    results: list[Any] = []
    notes = []
    for count in sorted({1, threads}):
        if call.output == "in place" and results:
            c[...] = contents["c"]
        try:
            results.append(_call(gemm, call, a, b, c, views["out"].array, count))
        except Exception as error:  # noqa: BLE001 - a legal call must not raise anything
            tally.case(call.problem, (), (), [f"raised {type(error).__name__}: {error}"], call.label)
            return
    result = results[-1]
    shape = contents["c"].shape
    if not isinstance(result, np.ndarray) or result.dtype != np.float32 or result.shape != shape:
        actual = f"{result.dtype} {result.shape}" if isinstance(result, np.ndarray) else type(result).__name__
        tally.case(call.problem, (), (), [f"returned {actual}, expected float32 {shape}"], call.label)
        return
    if results[0].tobytes() != result.tobytes():
        notes.append(f"the result with {threads} threads differs in its bits from that with 1")
    written = {"returned": "", "out": "out", "in place": "c"}[call.output]
    for name, view in views.items():
        changed = view.changed_outside() if name == written else view.changed()
        if changed:
            notes.append(f"{changed} bytes of {name}{' outside the array' if name == written else ''} were changed")
    if written and not np.array_equal(views[written].array, result, equal_nan=True):
        notes.append("the returned array differs from the one that was written")
    mismatches = []
    for where in np.ndindex(shape[:-2]):
        expected = _expected(call, contents, where)
        compared = compare("c", np.ascontiguousarray(result[where]), expected, call.problem.k)
        mismatches.append(compared.mismatch)
        tally.ratio(call.problem.label + call.label, compared.worst_ratio, compared.source_error)
    tally.case(call.problem, mismatches, (), notes, call.label)


def _arrays(call: Call, rng: np.random.Generator) -> dict[str, View]:
    op, p = GemmOp(), call.problem
    result = np.broadcast_shapes(*call.batch)
    batches = {"a": call.batch[0], "b": call.batch[1], "c": result}
    matrices: dict[str, Float32Array] = {}
    for name, batch in batches.items():
        count = int(np.prod(batch, dtype=np.int64))
        stack = [op.fill(p, rng)[name] for _ in range(max(1, count))][:count]
        operand = next(o for o in op.operands(p) if o.name == name)
        shape = (*batch, operand.rows, operand.cols)
        matrices[name] = np.stack(stack).reshape(shape) if stack else np.empty(shape, np.float32)
    kinds = dict(zip("abc", call.views, strict=True))
    views = {name: make_view(matrices[name], kinds[name]) for name in "abc"}
    third = call.views[2] if call.views[2] in WRITABLE_VIEWS else "plain"
    views["out"] = make_view(np.full_like(matrices["c"], np.nan), third)
    return views


def _call(
    gemm: GemmCall, call: Call, a: Float32Array, b: Float32Array, c: Float32Array, out: Float32Array, threads: int
) -> Any:
    p = call.problem
    options: dict[str, Any] = {"alpha": p.alpha, "beta": p.beta, "trans_a": p.trans_a, "trans_b": p.trans_b}
    if p.beta != 0.0 or call.output == "in place":
        options["c"] = c
    if call.output != "returned":
        options["out"] = c if call.output == "in place" else out
    result = gemm(a, b, threads=threads, **options)
    # With another number of threads the second call may overwrite the first one's result.
    return result.copy() if isinstance(result, np.ndarray) and call.output != "returned" else result


def _expected(call: Call, contents: dict[str, Float32Array], where: tuple[int, ...]) -> Expected:
    def at(name: str, batch: tuple[int, ...]) -> Float32Array:
        tail = where[len(where) - len(batch) :]
        index = tuple(0 if extent == 1 else i for extent, i in zip(batch, tail, strict=True))
        matrix: Float32Array = contents[name][index]
        return matrix

    inputs = {"a": at("a", call.batch[0]), "b": at("b", call.batch[1]), "c": contents["c"][where]}
    return GemmOp().reference(call.problem, inputs)["c"]
