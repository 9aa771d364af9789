"""The units for fused multiply-adds of a core, their lanes, and the peak that follows."""

from __future__ import annotations

from typing import Any

import pytest

from gemmlab.core import cpu_facts as facts
from gemmlab.core.cpu_info import computed_peak_gflops


def test_an_intel_core_with_amx_is_a_servers_whatever_model_a_hypervisor_reports() -> None:
    assert facts.fma_units("x86_64", "GenuineIntel", 6, 0xA7, "Intel(R) Xeon(R) Processor", 16)[0] == 1
    assert facts.fma_units("x86_64", "GenuineIntel", 6, 0xA7, "Intel(R) Xeon(R) Processor", 16, tiles=True)[0] == 2


def units(vendor: str, family: int, model: int, lanes: int, name: str = "", arch: str = "x86_64") -> int:
    return facts.fma_units(arch, vendor, family, model, name, lanes)[0]


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (("GenuineIntel", 6, 0x55, 16, "Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz"), 2),
        (("GenuineIntel", 6, 0x55, 16, "Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz"), 1),
        (("GenuineIntel", 6, 0x55, 16, "Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz"), 1),
        (("GenuineIntel", 6, 0x55, 16, "Intel(R) Xeon(R) Gold 5222 CPU @ 3.80GHz"), 2),
        (("GenuineIntel", 6, 0x6A, 16, "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz"), 2),
        (("GenuineIntel", 6, 0x8C, 16), 1),
        (("GenuineIntel", 6, 0x9E, 8), 2),
        (("AuthenticAMD", 0x19, 0x11, 16), 1),
        (("AuthenticAMD", 0x19, 0x01, 8), 2),
        (("AuthenticAMD", 0x1A, 0x02, 16), 2),
        (("AuthenticAMD", 0x1A, 0x24, 16), 1),
        (("AuthenticAMD", 0x17, 0x31, 8), 2),
        (("AuthenticAMD", 0x17, 0x01, 8), 1),
        (("ARM", 8, 0xD0C, 4, "", "aarch64"), 2),
        (("ARM", 8, 0xD4F, 4, "", "aarch64"), 4),
        (("Apple", 8, 0x22, 4, "", "aarch64"), 4),
        (("CentaurHauls", 6, 1, 4), 2),
    ],
)
def test_fma_units_follow_the_stated_rules(identity: tuple[Any, ...], expected: int) -> None:
    assert units(*identity) == expected


def test_the_computed_peak_is_the_sources() -> None:
    assert computed_peak_gflops(2.5, 2, 8) == 80
    assert computed_peak_gflops(2.5, 2, 16) == 160


def test_lanes_need_fused_multiply_add() -> None:
    assert facts.vector_lanes({"avx2"}) == 4
    assert facts.vector_lanes({"avx2", "fma"}) == 8
    assert facts.vector_lanes({"avx2", "fma", "avx512f"}) == 16
    assert facts.vector_lanes({"asimd", "sve"}) == 4
