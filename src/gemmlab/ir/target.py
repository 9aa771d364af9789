"""The target of generated code: vector width, register count, processor and features."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache

from gemmlab.core.errors import DeviceError
from gemmlab.ir import llvm

WIDTHS = (4, 8, 16)


@dataclass(frozen=True, slots=True)
class Target:
    """A processor as a target of the code generator.

    `lanes` is the float32 vector width (4, 8 or 16); `registers` is the number of vector registers of that width.
    """

    lanes: int
    registers: int
    triple: str
    cpu: str
    features: str
    fused: bool
    """True if a fused multiply-add is one instruction."""

    @property
    def arm(self) -> bool:
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def macos(self) -> bool:
        return "-apple-" in self.triple

    @property
    def windows(self) -> bool:
        return "-windows-" in self.triple

    @property
    def halves(self) -> bool:
        """True if this processor multiplies a vector of 16 lanes in two halves, one after the other (Zen 4)."""
        return self.lanes == 16 and self.cpu == "znver4"

    @property
    def name(self) -> str:
        """Name in programs and records: architecture, lanes and processor, as in `x86_64:16:sapphirerapids`."""
        return f"{self.triple.split('-')[0]}:{self.lanes}:{self.cpu}"


@cache
def host_target(lanes: int | None = None) -> Target:
    """Return the target for this processor with vectors of `lanes` float32 (4, 8 or 16), by default its widest.

    Raises `DeviceError` for another width, or one that the processor does not have.
    """
    binding = llvm.binding()
    features = dict(binding.get_host_cpu_features())
    arm = platform.machine().lower() in ("arm64", "aarch64")
    widest = (
        4 if arm else 16 if features.get("avx512f") and features.get("avx512vl") else 8 if features.get("avx2") else 4
    )
    chosen = widest if lanes is None else lanes
    if chosen not in WIDTHS:
        raise DeviceError(f"no vector width of {chosen} float32 lanes; widths are {WIDTHS}")
    if chosen > widest:
        raise DeviceError(f"this processor has vectors of at most {widest} float32 lanes, not {chosen}")
    if not arm and chosen < 16:
        # A narrow variant must be the code for an older processor: no mask registers and no upper registers.
        for name in features:
            if name.startswith(("avx512", "avx10", "evex", "amx")):
                features[name] = False
    flags = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    if chosen == 16:
        flags += ",-prefer-256-bit"
    return Target(
        lanes=chosen,
        registers=32 if arm or chosen == 16 else 16,
        triple=_triple(binding.get_process_triple()),
        cpu=binding.get_host_cpu_name(),
        features=flags,
        fused=arm or bool(features.get("fma")),
    )


def _triple(process: str) -> str:
    """Return LLVM's triple for code that is linked into this process, whose own triple is `process`.

    On Windows the objects are ELF, which LLVM can link and which allow 64-bit references; the calling convention stays
    that of Windows.
    """
    return f"{process}-elf" if "-windows-" in process and not process.endswith("-elf") else process
