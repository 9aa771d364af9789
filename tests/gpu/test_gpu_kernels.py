"""Every rung on a GPU: the whole contract against the reference, and the emulator's bits against the GPU's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.precision import FLOAT32
from gemmlab.core.program import Config
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.sass.checking.register_room import odd_descriptors
from gemmlab.sass.parse import parse
from gemmlab.toolchain import code_archive
from gemmlab.toolchain.disassembly import text_of
from gemmlab.verify.check import check_kernel
from gemmlab.verify.guarded_run import GuardedRun

OP = GemmOp()
KERNELS = [kernel for kernel in all_kernels() if kernel.device == "cuda"]
EXACT = [kernel for kernel in KERNELS if kernel.op == OP.name and kernel.precision == FLOAT32]
"""How a tensor core rounds its sums is a model in the emulator: those rungs are held to their bound alone."""
SHAPES = (
    GemmProblem(64, 64, 64),
    GemmProblem(128, 96, 32, 0.5, -1.0),
    GemmProblem(33, 65, 17, -1.0, 0.5),
    GemmProblem(1, 130, 7, 1.0, 1.0),
    GemmProblem(70, 3, 129, 0.75, 0.25, lda=140, ldb=11, ldc=5),
    GemmProblem(40, 50, 60, contents="special"),
    GemmProblem(40, 50, 60, 2.0, 0.5, contents="subnormal"),
    GemmProblem(40, 50, 60, 0.0, 0.5),
)


VARIANTS: list[tuple[str, Config]] = [
    ("split_k", {"BM": 32, "BN": 64, "BK": 32, "SPLITS": 1, "SEAM": 1, "ONCE": 3}),
    ("split_k", {"SPLITS": 5, "ONCE": 3}),
    ("narrow_strip", {"STRIP": 4, "LINES": 1, "SPLITS": 3, "ONCE": 1}),
    ("row_product", {"STRIP": 2, "BK": 64, "WARPS": 4, "SPLITS": 3, "ONCE": 2}),
    ("dot_product", {"LINES": 2, "BK": 512, "LOADS": 4, "SPLITS": 6, "ONCE": 2}),
    ("short_k", {"TS": 4, "LS": 8, "STAGES": 3, "BK": 32, "DEPTH": 64, "ONCE": 1}),
]
"""Configurations with other code than the reference configuration has."""


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
def test_the_whole_contract_holds(kernel: Kernel, gpu: CudaDevice) -> None:
    report = check_kernel(kernel, gpu, find_op(kernel.op))
    assert report.passed, report.explain()
    assert report.cases > 100 or report.refused


@pytest.mark.parametrize("kernel", EXACT, ids=lambda kernel: kernel.id)
def test_the_emulator_computes_the_same_bits(kernel: Kernel, gpu: CudaDevice, emulated_too: str) -> None:
    emulated = open_device(emulated_too)
    for problem in SHAPES:
        for layout in kernel.layouts:
            turned = problem.with_layout(layout)
            if not kernel.refusal(kernel.configure(), OP.scalars(turned)):
                here, there = (result(kernel, device, turned) for device in (gpu, emulated))
                assert np.array_equal(here, there), f"{turned.label} {layout}"


@pytest.mark.parametrize(("name", "config"), VARIANTS, ids=lambda value: value if isinstance(value, str) else "")
def test_variants_are_right_and_have_the_emulator_s_bits(
    name: str, config: Config, gpu: CudaDevice, emulated_too: str
) -> None:  # fmt: skip
    kernel = find_kernel(name)
    if is_miscompiled(kernel, gpu, config):
        pytest.skip("the compiler at hand writes descriptors at odd registers, which no GPU reads")
    report = check_kernel(kernel, gpu, OP, config=config)
    assert report.passed, report.explain()
    emulated = open_device(emulated_too)
    for problem in (*SHAPES, GemmProblem(65, 129, 300), GemmProblem(1, 1, 5000), GemmProblem(2, 40, 1024)):
        for layout in kernel.layouts:
            turned = problem.with_layout(layout)
            here, there = (result(kernel, device, turned, config) for device in (gpu, emulated))
            assert np.array_equal(here, there), f"{turned.label} {layout}"


@pytest.mark.parametrize("config", [{}, {"BN": 128, "BLOCKS": 264}], ids=["128x256", "128x128"])
def test_loops_written_anew_give_the_bits_of_the_compiler_s_loops(
    config: Config, gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    kernel = find_kernel("peak_simt")
    for problem in (GemmProblem(1152, 1152, 1152), GemmProblem(640, 1000, 333, 0.5, -1.0), GemmProblem(257, 300, 2048)):
        for layout in kernel.layouts:
            turned = problem.with_layout(layout)
            monkeypatch.setenv(code_archive.SWITCH, "")
            anew = result(kernel, gpu, turned, config)
            monkeypatch.setenv(code_archive.SWITCH, "1")
            assert np.array_equal(anew, result(kernel, gpu, turned, config)), f"{turned.label} {layout}"


def is_miscompiled(kernel: Kernel, gpu: CudaDevice, config: Config) -> bool:
    """Return whether the compiler at hand writes descriptors that no GPU reads, as NVRTC 13.0.88 does.

    Such code ends with "illegal instruction", which takes the process's context, and so all tests after it.
    """
    for instance in kernel.instances(kernel.configure(config)):
        code = gpu.build(kernel.program(instance, gpu.target(instance))).code
        if any(odd_descriptors(function) for function in parse(text_of(code, kernel.id)).values()):
            return True
    return False


def result(
    kernel: Kernel, device: Device, problem: GemmProblem, config: Config | None = None
) -> npt.NDArray[np.uint32]:
    """The bits of C, with one NaN for all."""
    run = GuardedRun(place(kernel, device, config), OP, problem, OP.fill(problem, np.random.default_rng(7)))
    run.run()
    contents = run.guarded["c"].contents()
    return np.where(np.isnan(contents), np.float32(np.nan), contents).view(np.uint32)
