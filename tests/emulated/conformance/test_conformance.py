"""The emulator's bits against those that a GPU made of the same kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import recorded
from cases import FILES, Case, Tolerance, cases, of_file
from compare import numbers, wrong
from execute import execute
from fragments import reference, scales

pytest.importorskip("gemmlab.devices.emulated", reason="there is no emulated device yet")
pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab.devices.emulated import ARCHITECTURES, EmulatedDevice

needs_recording = pytest.mark.skipif(not recorded.available(), reason="no GPU has recorded the conformance kernels yet")


ADDED_UP_OTHERWISE = frozenset({"mma_m16n8k16_f16"})
"""Kernels whose products tensor cores before sm_90 add up in halves, so that the bits are others than an H200's."""


@pytest.mark.sampled(1)
@needs_recording
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("file", FILES)
def test_every_kernel_gives_the_recorded_bits(file: str, arch: str) -> None:
    device = EmulatedDevice(arch, check_races=False)  # lanes that spin on shared memory race on purpose
    failures = [said for case in of_file(file, arch) if (said := disagreement(device, case, arch))]
    assert not failures, f"{len(failures)} kernels:\n" + "\n".join(failures)


def disagreement(device: EmulatedDevice, case: Case, arch: str) -> str:
    wanted = recorded.bits(case)
    if wanted is None or (case.kernel in ADDED_UP_OTHERWISE and arch in {"sm_80", "sm_89"}):
        return ""
    try:
        got = execute(device, case, arch)
    except Exception as error:  # noqa: BLE001 - one kernel that fails must not hide the others
        return f"{case.kernel}: {type(error).__name__}: {error}"
    # Sums of tensor cores may differ only from those of another architecture.
    exact = arch == recorded.ARCH and case.file == "tensor"
    differ = wrong(replace(case, near=Tolerance()) if exact else case, got, wanted)
    if not differ.any():
        return ""
    unit = differ.size // got.size
    first = int(np.flatnonzero(differ)[0]) // unit
    return f"{case.kernel}: {int(differ.sum())} of {differ.size} differ, {explain(case, first, got, wanted)}"


def explain(case: Case, place: int, got: Any, wanted: Any) -> str:
    """The first wrong value with what went in at the same place."""
    given = ", ".join(f"{bits[place]:#x}" for bits in case.inputs() if bits.size == case.n and place < case.n)
    return f"at {place} ({given}): {got[place]:#x} instead of {wanted[place]:#x}"


@pytest.mark.slow
@needs_recording
def test_every_kernel_was_recorded_with_these_inputs() -> None:
    textures = hasattr(EmulatedDevice, "linear_texture")
    missing = [
        case.kernel
        for case in cases(recorded.ARCH)
        if recorded.bits(case) is None and (textures or all(argument.role != "texture" for argument in case.arguments))
    ]
    assert not missing, f"record again on a GPU with record_conformance.py: {', '.join(missing)}"


@needs_recording
def test_recorded_matrix_products_are_products() -> None:
    """The recording against PTX's fragment tables: what the emulator must do follows from neither alone."""
    for case in of_file("tensor", recorded.ARCH):
        wanted = recorded.bits(case)
        assert wanted is not None, case.kernel
        check_product(case, wanted)


def check_product(case: Case, wanted: Any) -> None:
    (kind,) = (argument.kind for argument in case.arguments if argument.role == "out")
    got = numbers("f16", wanted.view(np.uint16)) if kind == "f16x2" else numbers("f32", wanted)
    exact, scale = reference(case), scales(case)
    assert scale is not None
    with np.errstate(invalid="ignore"):
        ordinary = np.isfinite(exact) & np.isfinite(got)
        error = np.abs(got - exact)[ordinary] / (case.near.sum * scale + case.near.rel * np.abs(exact))[ordinary].clip(
            2.0**-40
        )
    assert ordinary.mean() > 0.8, case.kernel
    assert error.max() <= 4, case.kernel


@pytest.mark.slow
def test_every_kernel_is_described() -> None:
    for arch in ARCHITECTURES:
        for case in cases(arch):
            assert sum(argument.role in {"out", "inout"} for argument in case.arguments) == 1, case.kernel


def test_a_difference_is_seen_and_nan_is_nan() -> None:
    (case,) = (case for case in of_file("float32", "sm_90") if case.kernel == "add_rn_f32")
    bits = np.array([0x3F800000, 0x7FC00000, 0, 0x7F800000], np.uint32)
    assert not wrong(case, bits, np.array([0x3F800000, 0xFFFFFFFF, 0, 0x7F800000], np.uint32)).any()
    assert wrong(case, bits, np.array([0x3F800001, 0x7F800000, 1 << 31, 0xFF800000], np.uint32)).all()


def test_an_approximation_may_differ_by_its_documented_error() -> None:
    (case,) = (case for case in of_file("special", "sm_90") if case.kernel == "rcp_approx_f32")
    one = np.array([0x3F800000] * 3, np.uint32)
    assert wrong(case, one, np.array([0x3F800001, 0x3F7FFFFF, 0x3F800002], np.uint32)).tolist() == [False, False, True]
