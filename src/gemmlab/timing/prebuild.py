"""Compile kernels on all cores in advance, before workers would compile them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from gemmlab.core.errors import DeviceError
from gemmlab.core.hardware import usable_cpus
from gemmlab.devices.device import Device
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.precision_rule import request_for
from gemmlab.dispatch.waves import gpu_of_facts
from gemmlab.kernels.by_name import is_own, kernel_named
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op
from gemmlab.precompile.cubins import Job, run_all
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec
from gemmlab.toolchain.build_cuda import build, for_gpu

Selection = Iterable[tuple[Kernel, Mapping[str, int]]]
"""Kernels of the catalog, each with the values of its compile-time parameters."""


def prebuild(
    wanted: Selection, device: Device, report: Callable[[str], object] = lambda _text: None, *, compiled: bool = False
) -> None:
    """Compile the `wanted` kernels for `device` into the cache; `report` gets a text after each.

    A kernel is not compiled if the cache has its code by any compiler, or if `device` is a GPU and the package's
    archive has it; with `compiled` the archive is used only for kernels whose main loop gemmlab rewrites. Failures to
    compile are ignored: a later use of the kernel reports them. For a CPU, where compiling is quick, nothing is done.
    """
    if family_of(device.family).host_threads:
        return
    planned: dict[tuple[str, str], Job] = {}
    for kernel, instance in wanted:
        try:
            program = kernel.program(instance, device.target(instance))
        except DeviceError:
            continue
        planned[program.kernel, program.entry] = Job(kernel.id, instance, program, kernel.id)
    make = _for_gpu if device.family == "cuda" and not compiled else _build
    for done, (job, _) in enumerate(run_all(list(planned.values()), len(usable_cpus()), make)):
        report(f"compiled {job.program.entry} ({done + 1} of {len(planned)})")


def of_plan(plan: Plan) -> Iterator[tuple[Kernel, dict[str, Any]]]:
    """Yield the kernels that are contestants of a bench, except users' own files."""
    return of_specs(plan.op, plan.contestants, plan.problems)


def of_library(plan: Plan, device: Device) -> Iterator[tuple[Kernel, dict[str, Any]]]:
    """Yield the kernels that `gemmlab.gemm` will choose on a GPU for the problems of a bench.

    Yields nothing if the bench does not time `gemmlab.gemm`, for a device other than a GPU, and for operations other
    than `gemm`. (Batches all run the same few kernels.)
    """
    calls = [spec for spec in plan.contestants if spec.kind == "gemmlab"]
    requests = {(request_for(spec.precision), spec.reproducible) for spec in calls}
    if device.family != "cuda" or plan.op.name != "gemm" or not requests:
        return
    info, table = device.describe(), shipped_table()
    where = gpu_of_facts(info.name, info.facts)
    for problem, (precision, reproducible) in product(plan.problems, sorted(requests)):
        choice = choose(problem, where, table, precision=precision, reproducible=reproducible)
        kernel = kernel_named(choice.kernel)
        yield kernel, kernel.instantiate(choice.config, plan.op.scalars(problem))


def of_specs(op: Op, specs: Iterable[Spec], problems: Sequence[Any]) -> Iterator[tuple[Kernel, dict[str, Any]]]:
    """Yield the kernels among the contestants for the problems that they take, except users' own files: their names
    are not in the catalog.
    """
    for spec in specs:
        if spec.kernel is None or is_own(spec.kernel):
            continue
        kernel = kernel_named(spec.kernel)
        config = kernel.configure(spec.config)
        for scalars in map(op.scalars, problems):
            if not kernel.refusal(config, scalars):
                yield kernel, kernel.instantiate(config, scalars)


def of_ladder(kernels: Iterable[Kernel]) -> Iterator[tuple[Kernel, dict[str, int]]]:
    """Yield every instance that a check of the kernels in their default configurations runs."""
    for kernel in kernels:
        for instance in kernel.instances(kernel.configure()):
            yield kernel, instance


def _build(job: Job) -> str:
    """Find the code of a job in the cache or compile it; return its digest."""
    return build(job.program).digest


def _for_gpu(job: Job) -> str:
    """Find the code of a job in the package's archive, else do as `_build` does; return its digest."""
    return for_gpu(job.program).digest
