"""Parse texts of the operating system about a processor, and derive vector width and FMA units. No file is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SIZE = re.compile(r"^(\d+)\s*([KMG]?)B?$", re.IGNORECASE)
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_ARM_IMPLEMENTERS = {
    0x41: "ARM", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0xC0: "Ampere",
}  # fmt: skip

ARM_CORES: Mapping[tuple[str, int], tuple[str, int]] = {
    ("ARM", 0xD08): ("Cortex-A72", 2),
    ("ARM", 0xD0B): ("Cortex-A76", 2),
    ("ARM", 0xD0C): ("Neoverse N1", 2),
    ("ARM", 0xD40): ("Neoverse V1", 4),
    ("ARM", 0xD49): ("Neoverse N2", 2),
    ("ARM", 0xD4F): ("Neoverse V2", 4),
    ("ARM", 0xD84): ("Neoverse V3", 4),
    ("ARM", 0xD8E): ("Neoverse N3", 2),
    ("Ampere", 0xAC3): ("Ampere-1", 2),
    ("Ampere", 0xAC4): ("Ampere-1A", 2),
}
"""(implementer, part number) -> (name of the core, number of its 128-bit FMA units)."""

# Microarchitectures with AVX-512 by Intel's family 6 model number. Servers have a second 512-bit unit on port 5.
_INTEL_SERVER_512 = {0x55, 0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE}
_INTEL_CLIENT_512 = {0x66, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7, 0x97, 0x9A}
_ONE_UNIT_NAMES = re.compile(r"\b(Bronze|Silver 4[12]\d\d|Gold 5[12](?!22)\d\d)\b")


def parse_size(text: str) -> int | None:
    """Parse a sysfs cache size such as `48K` or `32M` into bytes; `None` when malformed."""
    found = _SIZE.match(text.strip())
    return int(found[1]) * _SCALE[found[2].upper()] if found else None


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the CPU numbers in a list such as `0-3,8,10-11`; malformed parts are left out."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the fields of the first processor in a text of `/proc/cpuinfo`, keys in lower case."""
    fields: dict[str, str] = {}
    for line in text.lstrip().splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon:
            fields[key.strip().lower()] = value.strip()
    return fields


def parse_int(text: str | None) -> int | None:
    """Return a decimal (without leading zeros) or hexadecimal (`0x...`) integer; `None` when absent or malformed."""
    try:
        return int((text or "").strip(), 0)
    except ValueError:
        return None


def parse_float(text: str | None) -> float | None:
    """Return a decimal number; `None` when absent or malformed."""
    try:
        return float((text or "").strip())
    except ValueError:
        return None


def advertised_ghz(model_name: str) -> float | None:
    """Return the nominal clock in GHz from a model name (`... CPU @ 2.50GHz`), `None` if the name has none."""
    found = re.search(r"@\s*([\d.]+)\s*GHz", model_name, re.IGNORECASE)
    return parse_float(found[1]) if found else None


def arm_vendor(code: int | None) -> str:
    """Return the name of an implementer of ARM cores, by its code in the main ID register.

    One that is not known here is `"implementer 0x.."`, an absent one `"unknown"`.
    """
    return _ARM_IMPLEMENTERS.get(code, f"implementer {code:#x}") if code is not None else "unknown"


def vector_lanes(features: Iterable[str]) -> int:
    """Return the float32 lanes of the widest vectors that kernels are generated for.

    16 with AVX-512F, 8 with AVX2 and FMA, else 4.
    """
    have = set(features)
    if "avx512f" in have:
        return 16
    if {"avx2", "fma"} <= have:
        return 8
    return 4


def fma_units(
    arch: str, vendor: str, family: int, model: int, name: str, lanes: int, *, tiles: bool = False
) -> tuple[int, str]:
    """Return the number of FMA units of a core, and in words the rule that it follows from.

    A unit starts one FMA instruction on `lanes` float32 per cycle (x86), or on 4 (aarch64). Two 256-bit units that
    execute one AVX-512 instruction together count as one. `tiles` is true for a processor with AMX: it is an Intel
    server, even if a hypervisor reports another model. An unknown processor is assumed to have 2 units.
    """
    if arch == "aarch64":
        if vendor == "Apple":
            return 4, "Apple cores: 4 x 128 bits"
        core = ARM_CORES.get((vendor, model))
        if core:
            return core[1], f"{core[0]}: {core[1]} x 128 bits"
    elif vendor == "GenuineIntel" and family == 6:
        if lanes == 16 and (tiles or model in _INTEL_SERVER_512):
            if model == 0x55 and _ONE_UNIT_NAMES.search(name):
                return 1, "Skylake-SP/Cascade Lake Bronze, Silver, Gold 51xx/52xx: 1 x 512 bits"
            return 2, "Intel server with AVX-512: 2 x 512 bits"
        if lanes == 16 and model in _INTEL_CLIENT_512:
            return 1, "Intel client with AVX-512: 1 x 512 bits"
        if lanes == 8:
            return 2, "Intel with AVX2: 2 x 256 bits"
    elif vendor == "AuthenticAMD":
        if family == 0x1A and lanes == 16:
            if 0x20 <= model <= 0x2F or 0x60 <= model <= 0x6F:
                return 1, "Zen 5 mobile: 256-bit data path, 1 x 512 bits"
            return 2, "Zen 5: 2 x 512 bits"
        if family == 0x19:
            return (1, "Zen 4: 1 x 512 bits (two 256-bit halves)") if lanes == 16 else (2, "Zen 3/4: 2 x 256 bits")
        if family == 0x17 and lanes == 8:
            return (2, "Zen 2: 2 x 256 bits") if model >= 0x30 else (1, "Zen 1: 2 x 128 bits, 1 x 256 bits")
    return 2, "unknown processor: 2 units assumed"


def group_quota(paths: Iterable[tuple[str | None, str | None]]) -> float | None:
    """Return the CPU time, in CPUs, that the tightest control group allows; `None` if none sets a limit.

    `paths` has the texts (quota, period) of each level. Version 2 of control groups has both numbers in the first text
    (`max 100000`, `150000 100000`), and the second is `None`; version 1 has two texts, with quota -1 for no limit.
    """
    limits = []
    for quota_text, period_text in paths:
        if quota_text is None:
            continue
        parts = quota_text.split() + ([period_text] if period_text else [])
        if len(parts) == 2:
            quota, period = parse_float(parts[0]), parse_float(parts[1])
            if quota and period and quota > 0 and period > 0:
                limits.append(quota / period)
    return min(limits, default=None)


def group_paths(text: str) -> dict[str, str]:
    """Parse `/proc/self/cgroup` into controller -> path; the unified hierarchy (version 2) has the empty name."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths
