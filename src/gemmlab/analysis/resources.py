"""Resources of a compiled kernel: registers, shared memory, spills, stack and code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """Resources in bytes, except for the number of registers.

    Registers, stack and spills are per thread, shared memory is per block.
    """

    registers: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    spill_stores: int | None
    """Bytes that a thread stores to spill registers; `None`, like `spill_loads`, if the compiler's log is missing."""
    spill_loads: int | None
    stack_bytes: int
    code_bytes: int

    @property
    def smem_bytes(self) -> int:
        return self.static_smem_bytes + self.dynamic_smem_bytes

    @property
    def spilled(self) -> bool:
        return bool(self.spill_stores or self.spill_loads)


def explain_resources(resources: Mapping[str, int], dynamic_smem_bytes: int) -> ResourceReport:
    """Return the report of an artifact's `resources` and its launch's dynamic shared memory."""
    return ResourceReport(
        registers=resources["registers"],
        static_smem_bytes=resources["static_smem_bytes"],
        dynamic_smem_bytes=dynamic_smem_bytes,
        spill_stores=resources.get("spill_stores"),
        spill_loads=resources.get("spill_loads"),
        stack_bytes=resources["stack_bytes"],
        code_bytes=resources["code_bytes"],
    )
