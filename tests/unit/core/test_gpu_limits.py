"""Limits of GPU architectures, figures of models, and occupancy against published examples and its own laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import limits, model, occupancy

ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]


@pytest.mark.parametrize(
    ("arch", "registers", "smem", "threads", "blocks", "warps", "binding"),
    [
        # CUDA best practices guide, "Calculating occupancy": 12 blocks of 128 threads (75%), 4 of 320 (63%).
        ("sm_70", 37, 0, 128, 12, 48, ("registers",)),
        ("sm_70", 37, 0, 320, 4, 40, ("registers",)),
        # Boehm, "How to optimize a CUDA matmul kernel", kernel 3 on an RTX A6000: 32 of 48 warps (66%); the shared
        # memory alone would allow 11 blocks.
        ("sm_86", 37, 8192, 1024, 1, 32, ("warps", "registers")),
        ("sm_90", 37, 8192, 1024, 1, 32, ("registers",)),
        # 227 KiB is the most a block can have there, and 1 KiB goes to the system.
        ("sm_90", 128, 227 * 1024, 256, 1, 8, ("smem",)),
        ("sm_80", 32, 0, 32, 32, 32, ("blocks",)),
    ],
)
def test_published_occupancies(
    arch: str, registers: int, smem: int, threads: int, blocks: int, warps: int, binding: tuple[str, ...]
) -> None:
    found = occupancy(limits(arch), registers, smem, threads)
    assert (found.blocks, found.warps, found.binding) == (blocks, warps, binding)


def test_occupancy_shows_its_arithmetic() -> None:
    found = occupancy(limits("sm_86"), 37, 8192, 1024)
    assert (found.registers_per_warp, found.smem_per_block) == (1280, 9216)
    assert dict(found.allowed) == {"warps": 1, "blocks": 16, "registers": 1, "smem": 11}
    assert found.fraction == pytest.approx(2 / 3)


def test_registers_are_shared_out_a_partition_at_a_time() -> None:
    # 6400 a warp: two fit each of four partitions, 8 in all, where 65536 / 6400 would make 10.
    assert occupancy(limits("sm_90"), 200, 0, 32).allowed["registers"] == 8


def test_what_no_block_may_have_fits_never() -> None:
    assert occupancy(limits("sm_90"), 32, 227 * 1024 + 1, 128).blocks == 0
    assert occupancy(limits("sm_90"), 65, 0, 1024).binding == ("registers",)
    assert occupancy(limits("sm_90"), 65, 0, 1024).blocks == 0
    assert occupancy(limits("sm_90"), 64, 0, 1024).blocks == 1


@given(
    st.sampled_from(ARCHITECTURES),
    st.integers(1, 255),
    st.integers(0, 227 * 1024),
    st.integers(1, 1024),
)
def test_what_is_resident_fits(arch: str, registers: int, smem: int, threads: int) -> None:
    gpu = limits(arch)
    found = occupancy(gpu, registers, smem, threads)
    assert found.warps <= gpu.warps_per_sm
    assert found.blocks <= gpu.blocks_per_sm
    assert found.warps * 32 * registers <= gpu.registers_per_sm
    assert found.blocks * (smem + gpu.smem_reserved) <= gpu.smem_per_sm
    assert found.binding
    # More of anything never helps.
    assert occupancy(gpu, min(255, registers + 1), smem, threads).blocks <= found.blocks
    assert occupancy(gpu, registers, smem + 1, threads).blocks <= found.blocks
    assert occupancy(gpu, registers, smem, min(1024, threads + 1)).blocks <= found.blocks


@pytest.mark.parametrize(
    ("registers", "smem", "threads"), [(0, 0, 32), (256, 0, 32), (32, -1, 32), (32, 0, 0), (32, 0, 1025)]
)
def test_counts_that_no_kernel_has(registers: int, smem: int, threads: int) -> None:
    with pytest.raises(UsageError, match=r"registers|shared memory|threads"):
        occupancy(limits("sm_90"), registers, smem, threads)


def test_a_suffix_changes_no_limit() -> None:
    assert limits("sm_90a") is limits("sm_90")
    assert limits("sm_90").threads_per_sm == 2048
    assert [limits(arch).arch for arch in ARCHITECTURES] == ARCHITECTURES


@pytest.mark.parametrize("arch", ["sm_35", "90", "sm_90x", "", "compute_90"])
def test_an_unknown_architecture_lists_the_known(arch: str) -> None:
    with pytest.raises(UsageError, match=r"sm_75.*sm_90.*sm_121"):
        limits(arch)


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla T4", "T4"),
        ("rtx 3090", "RTX 3090"),
        ("A6000", "RTX A6000"),
        ("3090", "RTX 3090"),
        ("RTX3090", "RTX 3090"),
        ("rtxa6000", "RTX A6000"),
        ("Jetson AGX Orin", "AGX Orin"),
        ("Orin", "AGX Orin"),
    ],
)
def test_names_as_drivers_give_them(driver: str, name: str) -> None:
    assert model(driver).name == name


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA H100 NVL",
        "Jetson Orin NX",
        "Tesla V100-SXM2-32GB",
        "NVIDIA",
        "RTX",
        "Radeon",
    ],
)
def test_a_variant_is_not_taken_for_its_sibling(name: str) -> None:
    with pytest.raises(UsageError, match=r"H200, H100, .*T4"):
        model(name)


@pytest.mark.parametrize(
    # Float32 TFLOP/s as the data sheets round it.
    ("name", "teraflops"),
    [("H200", 67), ("A100", 19.5), ("L4", 30.3), ("L40S", 91.6), ("RTX 3090", 35.6), ("RTX 4090", 82.6),
     ("RTX A6000", 38.7), ("V100", 15.7), ("T4", 8.1), ("AGX Orin", 5.3)],
)  # fmt: skip
def test_peaks_agree_with_the_data_sheets(name: str, teraflops: float) -> None:
    assert model(name).peak_gflops / 1e3 == pytest.approx(teraflops, rel=0.01)
