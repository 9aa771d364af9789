"""The results of a kernel in records, and the request for its explanation that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmlab.core import gpu
from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import spread
from gemmlab.devices.emulated import ARCHITECTURES
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import unit_of
from gemmlab.ops.op import GBS
from gemmlab.pages.studies import Request
from gemmlab.pages.tables import kernel_of


@dataclass(frozen=True, slots=True)
class KernelResult:
    """A result of the kernel and the record that contains it."""

    result: Result
    record: Record

    @property
    def where(self) -> str:
        """Name of the record's device, else of its CPU, else `"?"`."""
        return str(self.record.device.get("name") or self.record.environment.get("cpu") or "?")

    @property
    def time_us(self) -> float:
        """Median time in microseconds; the result must have samples."""
        return spread([sample.time_us for sample in self.result.samples]).median

    @property
    def speed(self) -> float:
        """Speed in the operation's unit; the result must have samples."""
        work = self.result.bytes if unit_of(self.record.op) == GBS else self.result.flops
        return work / (self.time_us * 1e3)

    @property
    def digest(self) -> str:
        """Digest of the machine code; empty if the record has none."""
        return str(self.result.facts.get("code_sha256") or "")

    @property
    def config(self) -> dict[str, int]:
        """Parameter -> value; values other than integers, which a malformed record may have, are left out."""
        config = self.result.facts.get("config")
        found = config.items() if isinstance(config, dict) else ()
        return {name: value for name, value in found if isinstance(value, int) and not isinstance(value, bool)}

    @property
    def model(self) -> str:
        """Name of the record's device if it is a known GPU; empty for any other device."""
        try:
            return gpu.model(self.where).name
        except UsageError:
            return ""


def results_by_kernel(records: Iterable[Record]) -> dict[str, list[KernelResult]]:
    """Return the results of every kernel in the records, by id, in the catalog's order; unknown kernels come last."""
    found: dict[str, list[KernelResult]] = {}
    for record in records:
        for result in record.results:
            if name := kernel_of(result):
                found.setdefault(name, []).append(KernelResult(result, record))
    order = {kernel.id: place for place, kernel in enumerate(all_kernels())}
    return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, len(order)))}


def request_for(kernel: Kernel, name: str, results: Sequence[KernelResult], model: str) -> Request:
    """Return the request to explain a kernel, in the configuration of one of its `results` and for the GPU `model`.

    Results with machine code are preferred if they were timed, then if their configuration is the kernel's default;
    without any, the request has the default configuration. If `model` is empty, the GPU is that of the result. `name`
    is the kernel's id or file. The request for a CPU kernel has only the name.
    """
    if kernel.device != "cuda":
        return Request(name)
    coded = [one for one in results if one.digest and isinstance(one.result.facts.get("config"), dict)]
    usual = sorted(coded, key=lambda one: (not one.result.samples, one.config != dict(kernel.params)))
    if not usual:
        return Request(name, gpu=model)
    first = usual[0]
    target = str(first.result.facts.get("target"))
    arch = target if target in ARCHITECTURES else ""
    return Request(name, tuple(first.config.items()), *_machine(arch, model or first.model))


def _machine(arch: str, model: str) -> tuple[str, str]:
    """Return the architecture and the GPU, with an empty architecture if its code does not run on the GPU."""
    from gemmlab.analysis.subject import machine

    try:
        machine(arch, model)
    except UsageError:
        return "", model
    return arch, model
