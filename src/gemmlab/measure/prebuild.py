"""Compile what a bench will run, on all cores, before its workers each compile their own one by one."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.core.errors import DeviceError
from gemmlab.core.hardware import usable_cpus
from gemmlab.devices.device import Device
from gemmlab.measure.bench import Plan
from gemmlab.measure.families import family_of
from gemmlab.measure.own_kernel import is_own, kernel_named
from gemmlab.measure.precompile import Job, run_all
from gemmlab.toolchain.build_cuda import build


def prebuild(plan: Plan, device: Device, said: Callable[[str], object]) -> None:
    """See to it that the cache has the kernels of `plan`, by whatever compiler they were made.

    What cannot be had is left to the worker that needs it, to say so. Nothing is done on devices whose kernels a
    worker compiles in no time.
    """
    if family_of(device.id).host_threads:
        return
    planned: dict[tuple[str, str], Job] = {}
    for spec in plan.contestants:
        # A file with flags is not found again by its name alone.
        if spec.kernel is None or is_own(spec.kernel):
            continue
        kernel = kernel_named(spec.kernel)
        for problem in plan.problems:
            scalars = plan.op.scalars(problem)
            if kernel.refusal(kernel.configure(spec.config), scalars):
                continue
            instance = kernel.instantiate(kernel.configure(spec.config), scalars)
            try:
                program = kernel.program(instance, device.target(instance))
            except DeviceError:
                continue
            planned[program.entry, program.kernel] = Job(kernel.id, instance, program, spec.kernel)
    for done, (job, _) in enumerate(run_all(list(planned.values()), len(usable_cpus()), _find)):
        said(f"compiled {job.program.entry} ({done + 1} of {len(planned)})")


def _find(job: Job) -> str:
    """As a device finds or makes its code; the digest."""
    return build(job.program).digest
