"""The results that records have of a kernel, and which code they ask to be explained."""

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
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import GBS
from gemmlab.pages.studies import Request
from gemmlab.pages.tables import kernel_of


@dataclass(frozen=True, slots=True)
class Seen:
    """A result of the kernel, and where it was taken."""

    result: Result
    record: Record

    @property
    def where(self) -> str:
        return str(self.record.device.get("name") or self.record.environment.get("cpu") or "?")

    @property
    def time_us(self) -> float:
        """Of a result with samples."""
        return spread([sample.time_us for sample in self.result.samples]).median

    @property
    def speed(self) -> float:
        """In the unit of the operation."""
        work = self.result.bytes if find_op(self.record.op).unit == GBS else self.result.flops
        return work / (self.time_us * 1e3)

    @property
    def digest(self) -> str:
        return str(self.result.facts.get("code_sha256") or "")

    @property
    def config(self) -> dict[str, int]:
        """Without what is no parameter: a record's facts are free JSON."""
        config = self.result.facts.get("config")
        found = config.items() if isinstance(config, dict) else ()
        return {name: value for name, value in found if isinstance(value, int) and not isinstance(value, bool)}

    @property
    def model(self) -> str:
        """The GPU that the device's name says; empty for others."""
        try:
            return gpu.model(self.where).name
        except UsageError:
            return ""


def seen_kernels(records: Iterable[Record]) -> dict[str, list[Seen]]:
    """Every kernel in the records, in the catalog's order, those that it does not know last."""
    found: dict[str, list[Seen]] = {}
    for record in records:
        for result in record.results:
            if name := kernel_of(result):
                found.setdefault(name, []).append(Seen(result, record))
    order = {kernel.id: place for place, kernel in enumerate(all_kernels())}
    return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, len(order)))}


def request_for(kernel: Kernel, name: str, seen: Sequence[Seen], model: str) -> Request:
    """The code that was timed, else counted, else that of the default configuration; for the GPU of that record.

    `model` is the GPU to explain for, where the reader said so.
    """
    if kernel.device != "cuda":
        return Request(name)
    coded = [one for one in seen if one.digest and isinstance(one.result.facts.get("config"), dict)]
    usual = sorted(coded, key=lambda one: (not one.result.samples, one.config != dict(kernel.params)))
    if not usual:
        return Request(name, gpu=model)
    first = usual[0]
    target = str(first.result.facts.get("target"))
    arch = target if target in ARCHITECTURES else ""
    return Request(name, tuple(first.config.items()), *_machine(arch, model or first.model))


def _machine(arch: str, model: str) -> tuple[str, str]:
    """What fits together of the code's architecture and the GPU: the GPU counts more."""
    from gemmlab.analysis.subject import machine

    try:
        machine(arch, model)
    except UsageError:
        return "", model
    return arch, model
