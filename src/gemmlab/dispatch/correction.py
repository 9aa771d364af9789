"""Correct the estimates of `waves.py` by times of many random products.

The rule of waves has a few figures for each kernel. What it leaves out (rows off 16 bytes for one operand and not for
the other, columns beyond the last tile, how parts of k fall on multiprocessors) makes an estimate wrong by 14 % in the
root mean square. The error depends smoothly on a few numbers about the product and the launch, which trees fitted to
the times of thousands of products predict (`makers/correction_fit.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gemmlab.core.precision import FLOAT32, FLOAT_BYTES
from gemmlab.dispatch.choice_values import Candidate
from gemmlab.dispatch.measurements import Measurement, Table
from gemmlab.dispatch.waves import Estimate, Gpu, gpu_model, reads_by_words
from gemmlab.ops.gemm_problem import GemmProblem

LIKELY = 20
"""The number of candidates with the least estimates that are corrected. At 4,251 random products the best of these took
at most 13 % longer than the best of 32.
"""
PARAMS = ("STRIP", "LINES", "BM", "BN", "BK", "KGROUPS", "WARPS", "STAGES", "ONCE", "SEAM", "TS", "LS", "BLOCKS")
"""The parameters of configurations that the trees know; -1 for a kernel without one."""


class Guess(NamedTuple):
    """A candidate, and what its estimate was made from."""

    candidate: Candidate
    entry: Measurement
    parts: int
    estimate: Estimate


def corrected(guesses: Sequence[Guess], problem: GemmProblem, where: Gpu, table: Table) -> list[Candidate]:
    """Return the candidates in the same order, the likely ones with corrected times.

    Measured times, times of precisions other than float32, and all times on a GPU of another architecture or size
    remain.
    """
    found = [guess.candidate for guess in guesses]
    measured_on = gpu_model(table.gpu)
    if table.correction is None or (where.limits, where.sms) != (measured_on.limits, measured_on.sms):
        return found
    able = [
        at for at, one in enumerate(found)
        if one.precision == FLOAT32 and not one.measured and 0 < one.us < math.inf
    ]  # fmt: skip
    likely = sorted(able, key=lambda at: found[at].us)[:LIKELY]
    if not likely:
        return found
    kernels, of_product = table.correction.facts["kernels"], _of_product(problem)
    rows = [[*of_product.values(), *_of_launch(*guesses[at][1:], problem, where, kernels).values()] for at in likely]
    for at, error in zip(likely, table.correction.sums(rows), strict=True):
        found[at] = replace(found[at], us=found[at].us * math.exp(error), corrected=True)
    return found


def features(
    entry: Measurement, parts: int, estimate: Estimate, problem: GemmProblem, where: Gpu, kernels: Sequence[str]
) -> dict[str, float]:
    """Return the numbers that the trees look at, by name, for the estimate of a kernel with k in `parts` parts.
    A kernel's number is its index in `kernels`, or -1.

    All are made by operations of IEEE arithmetic that are exact or rounded alike everywhere.
    """
    return _of_product(problem) | _of_launch(entry, parts, estimate, problem, where, kernels)


def _of_product(problem: GemmProblem) -> dict[str, float]:
    m, n, k = problem.m, problem.n, problem.k
    b_wide = m < n or (m == n and problem.trans_b)
    wide_ld, narrow_ld = (problem.ldb, problem.lda) if b_wide else (problem.lda, problem.ldb)
    return {
        "m": m, "n": n, "k": k, "least": min(m, n), "largest": max(m, n),
        "trans_a": problem.trans_a, "trans_b": problem.trans_b,
        "wide_along_k": problem.trans_b if b_wide else not problem.trans_a,
        "lda_4": problem.lda % 4, "ldb_4": problem.ldb % 4, "ldc_4": problem.ldc % 4,
        "lda_32": problem.lda % 32, "ldb_32": problem.ldb % 32,
        "wide_off": wide_ld % 4 > 0, "narrow_off": narrow_ld % 4 > 0,
        "words": reads_by_words(problem),
    }  # fmt: skip


def _of_launch(
    entry: Measurement, parts: int, estimate: Estimate, problem: GemmProblem, where: Gpu, kernels: Sequence[str]
) -> dict[str, float]:
    m, n, k, us, config = problem.m, problem.n, problem.k, estimate.us, entry.config
    per_sm = estimate.blocks / where.sms
    waves = per_sm / max(1, estimate.resident)
    tile_m, tile_n = config.get("BM", 1), config.get("BN", 1)
    return {
        "kernel": kernels.index(entry.kernel) if entry.kernel in kernels else -1,
        "blocks": estimate.blocks, "waves": waves, "part_wave": waves % 1.0, "fill": math.ceil(per_sm) / per_sm,
        "resident": estimate.resident, "steps": estimate.steps, "parts": parts, "k_of_part": k / parts,
        "registers": entry.registers, "smem": entry.smem,
        "warps": entry.threads // 32 * min(estimate.resident, math.ceil(per_sm)),
        # The estimate, and what takes time beside it.
        "us": us, "bytes": FLOAT_BYTES * (m * k + k * n + m * n) / us, "flops": m * n * k / us,
        "bytes_of_parts": m * n * parts / us, "bytes_of_c": m * n / us, "bytes_of_wide": max(m, n) * k / us,
        # Tiles over the edge, and rows and columns behind the last tile.
        "over_m": -(-m // tile_m) * tile_m / m, "over_n": -(-n // tile_n) * tile_n / n,
        "over_strip": -(-min(m, n) // config.get("STRIP", 1)) * config.get("STRIP", 1) / min(m, n),
        "rest_m": m % tile_m, "rest_n": n % tile_n,
        "seam": (m % tile_m * n + n % tile_n * m) * k / us if config.get("SEAM") else 0,
        **{name: config.get(name, -1) for name in PARAMS},
    }  # fmt: skip
