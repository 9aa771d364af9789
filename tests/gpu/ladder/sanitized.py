"""Executes kernels on operands of exactly their size: what compute-sanitizer is started on.

`python sanitized.py DEVICE KERNEL...`; says each kernel's name once it has run.
"""

from __future__ import annotations

import sys

import numpy as np

from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem

OP = GemmOp()
PROBLEMS = (
    GemmProblem(128, 128, 64, 0.5, 1.0),
    GemmProblem(132, 68, 36, 0.5, -1.0),
    GemmProblem(131, 67, 37, 0.5, -1.0),
    GemmProblem(3, 5, 2),
)
"""Kernels that read rows by tensor maps take the first two."""


def main() -> None:
    device = open_device(sys.argv[1])
    for name in sys.argv[2:]:
        kernel = find_kernel(name)
        for problem in (turned for p in PROBLEMS for turned in OP.in_layouts(p, kernel.layouts)):
            if kernel.refusal(kernel.configure(), OP.scalars(problem)):
                continue
            contents = OP.fill(problem, np.random.default_rng(0))
            flat = {operand: array.reshape(-1) for operand, array in contents.items()}
            bind(kernel, device, OP, problem, flat).run()
        print(f"ran {name}", flush=True)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
