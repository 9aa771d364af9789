"""The CUDA kernels shipped, run from their machine code: right at the edges, and counted as their files say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from gemmlab.core.counters import Observation
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import parse
from gemmlab.core.gpu import limits
from gemmlab.core.program import Config
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.claims import Expectation
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.precompile.sweep import block_of
from gemmlab.timing.configurations import spread
from gemmlab.verify.check import check_kernel
from support.architectures import architectures, on_architectures
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
CUDA_KERNELS = [kernel for kernel in all_kernels() if kernel.device == "cuda" and kernel.op == "gemm"]
OP = GemmOp()
SHAPES = ((33, 35, 31), (64, 64, 64), (3, 70, 9), (129, 131, 17), (70, 3, 5), (1, 1, 1), (0, 5, 3), (7, 6, 0))
SCALARS = ((1.0, 0.0), (0.5, -1.0), (0.0, 1.0), (0.0, 0.0), (float("nan"), 0.0), (-1.0, float("nan")))
SAMPLED = 8
"""Configurations of each kernel, beside its default, which is checked at every edge."""
STATEMENTS = [(kernel, expectation) for kernel in CUDA_KERNELS for expectation in kernel.expect]


@cache
def device(arch: str) -> Device:
    return open_device(f"emulated:{arch}")


def edge_cases(kernel: Kernel) -> list[GemmProblem]:
    """Every shape, alpha, beta and stride somewhere; a kernel of several layouts meets half of the shapes in each."""
    scalars, padding = cycle(SCALARS), cycle(((0, 0, 0), (4, 8, 4), (1, 2, 3)))
    cases = []
    for index, layout in enumerate(kernel.layouts):
        for shape in SHAPES[index % 2 :: 2] if len(kernel.layouts) > 1 else SHAPES:
            alpha, beta = next(scalars)
            p = GemmProblem(*shape, alpha, beta).with_layout(layout)
            a, b, c = next(padding)
            cases.append(replace(p, lda=p.lda + a, ldb=p.ldb + b, ldc=p.ldc + c))
        cases += [GemmProblem(37, 41, 29, contents=c).with_layout(layout) for c in ("special", "subnormal")]
    return [admitted(kernel, case) for case in cases]


def admitted(kernel: Kernel, p: GemmProblem) -> GemmProblem:
    """The problem, in multiples of four if the kernel takes no others, as those that read by tensor maps."""
    if not kernel.refusal(kernel.configure(), OP.scalars(p)):
        return p
    m, n, k = (-(-extent // 4) * 4 for extent in (p.m, p.n, p.k))
    fours = GemmProblem(m, n, k, p.alpha, p.beta, contents=p.contents).with_layout(p.layout)
    return replace(fours, lda=fours.lda + 4, ldb=fours.ldb + 8, ldc=fours.ldc + 4)


def observed(kernel: Kernel, config: Config, size: str, arch: str) -> Observation:
    """Many statements are about the same run."""
    return observed_once(kernel.id, tuple(sorted(config.items())), size, arch)


@cache
def observed_once(kernel_id: str, settings: tuple[tuple[str, int], ...], size: str, arch: str) -> Observation:
    kernel, config = find_kernel(kernel_id), dict(settings)
    (problem,) = OP.parse_sizes(size)
    target = device(arch)
    contents = OP.fill(problem, np.random.default_rng(1))
    buffers = {name: target.upload(array.ravel()) for name, array in contents.items()}
    seen = place(kernel, target, config).bind(OP, problem, buffers).observe()
    for buffer in buffers.values():
        target.free(buffer)
    return seen


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kernel", "arch"), on_architectures(CUDA_KERNELS))
def test_a_kernel_is_right_at_every_edge_and_commits_no_hazard(kernel: Kernel, arch: str) -> None:
    report = check_kernel(kernel, device(arch), OP, cases=edge_cases(kernel))
    assert report.passed, report.explain()
    assert report.cases >= 10


def sampled() -> Iterator[Any]:
    """Configurations spread over each kernel's space beside its default, each on the next architecture and layout."""
    for kernel in CUDA_KERNELS:
        archs = cycle(architectures(kernel))
        # To compile takes longer than to run: a configuration meets one of each.
        for config, layout in zip(spread(kernel, SAMPLED + 1)[1:], cycle(kernel.layouts), strict=False):
            named = ",".join(f"{name}={value}" for name, value in config.items())
            arch = next(arch for arch in archs if fits(kernel, config, arch))
            yield pytest.param(kernel, config, layout, arch, id=f"{kernel.id}[{named}] {layout} {arch}")


def fits(kernel: Kernel, config: Config, arch: str) -> bool:
    """Whether the architecture has the shared memory."""
    instance = kernel.instantiate(kernel.configure(config), OP.scalars(GemmProblem(64, 64, 64)))
    return block_of(kernel, instance)[1] <= limits(arch).smem_per_block


def tile_cases(config: Config, layout: str) -> list[GemmProblem]:
    """A whole number of tiles, ragged ones around it, and hardly anything."""
    bm, bn, bk = (config.get(name, 32) for name in ("BM", "BN", "BK"))
    # Deep enough for a ring of stages to come round.
    deep = bk * (config.get("STAGES", 1) + 1)
    shapes = ((bm, 2 * bn, deep), (bm + 3, bn + 5, deep + 3), (bm - 1, 7, bk + 1), (2, 3, 1))
    scalars = cycle(((1.0, 0.0), (0.5, -1.0), (-1.0, 1.0)))
    problems = (GemmProblem(*shape, *next(scalars)).with_layout(layout) for shape in shapes)
    return [replace(p, lda=p.lda + 4 * place, ldc=p.ldc + place) for place, p in enumerate(problems)]


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kernel", "config", "layout", "arch"), list(sampled()))
def test_configurations_spread_over_the_space_are_right_too(
    kernel: Kernel, config: Config, layout: str, arch: str
) -> None:
    report = check_kernel(kernel, device(arch), OP, config=config, cases=tile_cases(config, layout))
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kernel", "expectation", "arch"),
    [
        pytest.param(kernel, said, arch, id=f"{kernel.id}: {said.that.text}-{arch}")
        for kernel, said in STATEMENTS
        for arch in architectures(kernel)
    ],
)
def test_what_a_file_expects_is_what_is_counted(kernel: Kernel, expectation: Expectation, arch: str) -> None:
    (problem,) = OP.parse_sizes(expectation.shape)
    seen = observed(kernel, expectation.config, expectation.shape, arch)
    instance = kernel.instantiate(kernel.configure(expectation.config), OP.scalars(problem))
    assert expectation.verdict(seen.counters, instance, OP.scalars(problem)) == ""
    assert seen.hazards == ()


def test_what_does_not_hold_is_said_with_what_was_counted() -> None:
    kernel = find_kernel("naive")
    counters = observed(kernel, {}, "32x32x8", "sm_90").counters
    scalars = OP.scalars(GemmProblem(32, 32, 8))

    def verdict(that: str) -> str:
        expectation = Expectation(parse(that), "32x32x8", {}, "mine.cu:3: expect")
        return expectation.verdict(counters, kernel.params, scalars)

    assert verdict("executed_LDG_E == 2 * 8 * M * N // BN") == ""
    assert verdict("executed_LDG_128 == 0 and smsp__inst_executed.sum == instructions") == ""
    said = verdict("global_store_requests == M + 1")
    assert said.startswith("mine.cu:3: expect: global_store_requests == M + 1 does not hold for 32x32x8: ")
    assert said.endswith("M = 32, global_store_requests = 32")
    with pytest.raises(UsageError, match="no value named 'shared_load_exces'; did you mean shared_load_excess"):
        verdict("shared_load_exces == 0")
