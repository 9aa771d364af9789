"""One run's results against the float64 reference, each element within its own bound."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.kernels.bound import Placed
from gemmlab.ops.op import Float32Array, Op, Problem
from gemmlab.verify.elementwise import Comparison, compare
from gemmlab.verify.guards import GuardedBuffer


def judge_results(
    placed: Placed, op: Op, problem: Problem, contents: Mapping[str, Float32Array], left: Mapping[str, GuardedBuffer]
) -> list[Comparison]:
    """One for each output. `contents` are the operands as they were before the run, `left` what it left of them."""
    scalars = op.scalars(problem)
    roundings = placed.kernel.roundings(placed.kernel.instantiate(placed.config, scalars), scalars)
    expected = op.reference(problem, contents, roundings, placed.kernel.precision)
    return [compare(name, left[name].contents(), values, op.dot_length(problem)) for name, values in expected.items()]
