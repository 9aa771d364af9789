"""`python -m gemmlab.observe.ncu_target PLAN DONE`: the program that ncu profiles; it executes each contestant once.

The plan has an operation, problems and contestants. The first execution loads and chooses code; profiling is switched
on around the second. DONE lists, in order, the executed contestants and the number of launches of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core.errors import GemmlabError
from gemmlab.devices.cuda_driver import open_driver
from gemmlab.kernels.bound import BoundKernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Op
from gemmlab.ops.op_file import load_operation
from gemmlab.timing.contestants.contestant import Work
from gemmlab.timing.contestants.from_spec import make_contestant
from gemmlab.timing.contestants.on_device import OnDevice


def main() -> None:
    """Read the plan, execute it, and write the file DONE."""
    plan, done = (Path(argument) for argument in sys.argv[1:3])
    done.write_text(json.dumps(list(execute(json.loads(plan.read_text())))), encoding="utf-8")


def execute(plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Execute each contestant of a plan at each size twice, the second time with profiling switched on.

    Yield a mapping for each contestant and size: `contestant`, `size`, `facts` and `launches` (`None` for a library, 0
    if it did not run); with 0 launches also the reason as `why`.
    """
    if file := plan.get("op_file"):
        load_operation(Path(file))
    op, driver = find_op(plan["op"]), open_driver()
    for spec in plan["specs"]:
        contestant = None
        for problem in map(op.problem_from_json, plan["problems"]):
            identity = {"contestant": spec["name"], "size": problem.label}
            try:
                contestant = contestant or make_contestant(spec)
                prepared = contestant.prepare(work_of(op, problem))
                prepared.run()
            except (GemmlabError, MemoryError) as error:
                yield {**identity, "facts": {}, "launches": 0, "why": str(error)}
                continue
            driver("cuProfilerStart")
            prepared.run()
            driver("cuProfilerStop")
            attached = prepared.attached if isinstance(prepared, OnDevice) else None
            launches = len(attached.launches) if isinstance(attached, BoundKernel) else None
            nothing = {"why": "it launches nothing at this size"} if launches == 0 else {}
            yield {**identity, "facts": contestant.facts(), "launches": launches, **nothing}


def work_of(op: Op, problem: Any) -> Work:
    """Return the work of a problem with newly allocated operands, whose random values are always the same."""
    operands = {operand.name: operand for operand in op.operands(problem)}
    contents = {name: np.ascontiguousarray(array) for name, array in op.fill(problem, np.random.default_rng(1)).items()}
    return Work(
        op=op.name, problem=problem.to_json(), flops=op.flops(problem),
        scalars={name: value.item() for name, value in op.scalars(problem).items()},
        flat={name: contents[name].reshape(-1) for name in operands}, matrices=contents, threads=1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
