"""The checks that a call of `gemmlab.check` requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.devices.device import Device
    from gemmlab.kernels.by_name import NamedKernel
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.ops.op import Op, Problem
    from gemmlab.verify.case_tally import Progress
    from gemmlab.verify.check_report import CheckReport

LIBRARY = "gemmlab.gemm"
"""Name of gemmlab's own matrix product where names of kernels are listed."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The arguments of a call, with loaded kernels and an open device."""

    names: Sequence[str]
    """Names of kernels and library functions, in order; empty for the ladder and gemmlab's own function."""
    kernels: Mapping[str, NamedKernel]
    op: Op
    problems: Sequence[Problem] | None
    """Problems to check; `None` for all cases of the operation's contract."""
    device: Device
    threads: int | None
    """Thread count; `None` for all cores, at least 2."""
    scale: str
    config: Mapping[str, int]
    seed: int

    def runs(self) -> dict[str, Callable[[Progress], CheckReport]]:
        """Return a function for each check, by the name of the kernel or library function. Raises `UsageError`."""
        from gemmlab.core.hardware import physical_cores, require_cpus
        from gemmlab.instruments.defaults import rungs_here
        from gemmlab.kernels.by_name import NamedKernel, is_own, require_device
        from gemmlab.kernels.rungs_on import no_ladder
        from gemmlab.timing.families import family_of

        if self.config and not self.names:
            raise UsageError("--config: name the kernel that it configures")
        op, where = self.op, self.device.device_name
        if self.threads is not None:
            require_cpus(self.threads)
        # Two threads on a single core still show races.
        workers = max(2, physical_cores()) if self.threads is None else self.threads
        library = family_of(where.family, op.name).library_call
        kernels, names = self.kernels, self.names
        if not names:
            kernels = {kernel.id: NamedKernel(kernel) for kernel in rungs_here(op.name, self.device)}
            names = [*kernels, *([library] if library else [])]
        found: dict[str, Callable[[Progress], CheckReport]] = {}
        for name in names:
            if name in _LIBRARY_CHECKS:
                if name != library:
                    raise UsageError(f"{name} does not run on {where}, or is not of the operation {op.name}")
                if self.config:
                    raise UsageError(f"--config: {name} has no parameters")
                found[name] = _LIBRARY_CHECKS[name](self.problems, workers, self.scale, self.seed)
                continue
            kernel = require_device(kernels[name].kernel, where)
            # Several kernels may compute one operation on operands of different types.
            if kernel.op.partition(":")[0] != op.name.partition(":")[0]:
                raise UsageError(f"{name} is a kernel for {kernel.op}, not for {op.name}")
            found[name if is_own(name) else kernel.id] = self._kernel_run(kernel, workers)
        if not found:
            raise no_ladder(op.name, self.device)
        return found

    def _kernel_run(self, kernel: Kernel, workers: int) -> Callable[[Progress], CheckReport]:
        from gemmlab.ops.catalog import find_op
        from gemmlab.verify.check import check_kernel

        cases, op = None, find_op(kernel.op)
        if self.problems is not None:
            cases = [case for problem in self.problems for case in _as_stated(op, problem, kernel.layouts)]
        return lambda progress: check_kernel(
            kernel, self.device, op, config=self.config, threads=workers if kernel.threaded else 1, cases=cases,
            scale=self.scale, seed=self.seed, progress=progress,
        )  # fmt: skip


def _as_stated(op: Op, problem: Any, layouts: Sequence[str]) -> Sequence[Any]:
    """Return a problem in all of `layouts`; one that states its layout or padding alone, as it is."""
    plain = problem in op.in_layouts(problem, ["nn"])
    return op.in_layouts(problem, layouts) if plain else [problem]


def _sum_call(problems: Sequence[Any] | None, threads: int, scale: str, seed: int) -> Callable[[Progress], CheckReport]:
    def run(progress: Progress) -> CheckReport:
        import gemmlab
        from gemmlab.verify.check_sum import check_sum

        total: Callable[..., Any] = gemmlab.sum
        return check_sum(
            total, name="gemmlab.sum", threads=threads, problems=problems, scale=scale, seed=seed, progress=progress
        )

    return run


def _product_call(
    problems: Sequence[Any] | None, threads: int, scale: str, seed: int
) -> Callable[[Progress], CheckReport]:
    def run(progress: Progress) -> CheckReport:
        import gemmlab
        from gemmlab.verify.check_call import Call, check_callable

        calls = None if problems is None else [Call(problem, ("plain",) * 3, "out") for problem in problems]
        gemm: Callable[..., Any] = gemmlab.gemm
        return check_callable(
            gemm, name=LIBRARY, threads=threads, calls=calls, scale=scale, seed=seed, progress=progress
        )

    return run


_LIBRARY_CHECKS = {LIBRARY: _product_call, "gemmlab.sum": _sum_call}
"""Name of a library function among the kernels -> maker of its check."""
