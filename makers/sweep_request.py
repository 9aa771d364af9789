"""The trials and products that the command line of `sweep_kernels.py` names."""

from __future__ import annotations

import argparse
import itertools
import re
from dataclasses import replace
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import parse
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.configurations import ALL, spread
from gemmlab.timing.suite.shapes import shipped_suite
from quick_times import OP, Trial
from random_products import draw

TABLE = "table"
"""The word, in place of a kernel, for all kernels and configurations that the library call may choose."""


def parsed_trials(text: str, op: str = OP.name) -> list[Trial]:
    """Return the trials that one argument of `--kernels` names: `NAME`, `NAME:all`, `NAME:20`, `NAME:BM=64,BN=32+64`,
    each with ` if CONDITION` or without; `table`; or `@FILE` with such lines.

    Raises `UsageError`, also for a kernel of another operation than `op`.
    """
    if text == TABLE:
        return table_trials()
    if text.startswith("@"):
        return [trial for line in _lines(Path(text[1:])) for trial in parsed_trials(line, op)]
    text, _, condition = (piece.strip() for piece in text.partition(" if "))
    if condition:
        parse(condition)
        return [replace(trial, condition=condition) for trial in parsed_trials(text, op)]
    name, colon, which = text.partition(":")
    kernel = find_kernel(name)
    if (kernel.op, kernel.device) != (op, "cuda"):
        raise UsageError(f"--kernels {text}: {name} is a {kernel.device} kernel for {kernel.op}, not a GPU's for {op}")
    if not colon:
        return [Trial(kernel.id, kernel.configure())]
    if which == ALL:
        return [Trial(kernel.id, config) for config in kernel.configurations()]
    if re.fullmatch(r"[1-9][0-9]{0,4}", which):
        return [Trial(kernel.id, config) for config in spread(kernel, int(which))]
    pairs = [part.partition("=") for part in which.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,9}([+][0-9]{1,9})*", value) for _, _, value in pairs):
        raise UsageError(f"--kernels {text}: write {name}, {name}:all, {name}:20 or {name}:BM=64,BN=32+64")
    values = [[(key, int(one)) for one in value.split("+")] for key, _, value in pairs]
    return [Trial(kernel.id, kernel.configure(dict(config))) for config in itertools.product(*values)]


def _lines(path: Path) -> list[str]:
    """Return the lines of a file without comments (`#`) and empty lines. Raises `UsageError` if it cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"--kernels @{path}: {error.strerror}") from error
    return [text for line in lines if (text := line.partition("#")[0].strip())]


def table_trials() -> list[Trial]:
    """Return a trial for every kernel, configuration and number of parts in the library's table."""
    return [
        Trial(entry.kernel, {**entry.config, **({"SPLITS": parts} if parts else {})}, entry.domain)
        for entry in shipped_table().entries
        for parts in entry.parts or (0,)
    ]


def wanted_problems(options: argparse.Namespace) -> list[GemmProblem]:
    """Return the products of `--sizes`, of `--suite` or `--family`, and of `--random`, in each of `--layouts` if there
    are any. Raises `UsageError`.
    """
    texts = [options.sizes] if options.sizes else []
    if options.suite or options.family:
        texts += [shape.text for shape in shipped_suite().of_family(options.family) if shape.op == options.op]
    if not texts and not options.random:
        raise UsageError("no products: give --sizes, --suite or --random")
    op = find_op(options.op)
    problems: list[GemmProblem] = op.parse_sizes(",".join(texts)) if texts else []
    if options.random:
        problems += draw(*seed_and_count(options.random), most=2**options.most_steps, deepest=options.most_k)
    problems = list({problem.label: problem for problem in problems}.values())
    layouts = options.layouts.split(",") if options.layouts else []
    return [each for problem in problems for each in (op.in_layouts(problem, layouts) if layouts else [problem])]


def seed_and_count(text: str) -> tuple[int, int]:
    """Return the seed and the number of random products that `--random` names. Raises `UsageError`."""
    if not re.fullmatch(r"[0-9]{1,9}:[1-9][0-9]{0,4}", text):
        raise UsageError(f"--random {text}: write SEED:COUNT, as 3:100")
    seed, _, count = text.partition(":")
    return int(seed), int(count)
