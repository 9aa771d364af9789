"""Every CPU kernel that runs here: right in all the shapes of the contract, at every width, in blocks of any size."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Launch
from gemmlab.devices.cpu import CpuDevice
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.kernels import cpu_kernel
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.gemm_cpu import microkernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.check import check_kernel
from support.paths import SUPPORT

CPU_KERNELS = [
    kernel for kernel in all_kernels() if kernel.device == "cpu" and kernel.op == "gemm" and not kernel.unavailable()
]
"""Those that this processor runs: a skipped case would be the only one of a quick run."""
WIDE = [kernel for kernel in CPU_KERNELS if kernel.id in ("packed", "microkernel", "threaded")]
BLOCK_NAMES = ("MC", "KC", "NC")
TINY_BLOCKS = ({"MC": 24, "KC": 16, "NC": 48}, {"MC": 1, "KC": 1, "NC": 100})


def needs_width(lanes: int) -> None:
    try:
        host_target(lanes)
    except DeviceError as error:
        pytest.skip(str(error))


def names(kernels: list[Kernel]) -> list[Any]:
    return [pytest.param(kernel, id=kernel.id) for kernel in kernels]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", names(CPU_KERNELS))
def test_a_kernel_is_right_as_it_is_shipped(kernel: Kernel) -> None:
    for threads in (1, 3) if kernel.threaded else (1,):
        report = check_kernel(kernel, CpuDevice(), GemmOp(), threads=threads)
        assert report.passed, report.explain()
        assert report.cases > 150


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("kernel", names(WIDE))
def test_a_kernel_is_right_at_every_width(kernel: Kernel, lanes: int) -> None:
    needs_width(lanes)
    if lanes == host_target().lanes:
        pytest.skip("the width it is shipped with here")
    report = check_kernel(kernel, CpuDevice(), GemmOp(), config={"LANES": lanes}, threads=2 if kernel.threaded else 1)
    assert report.passed, report.explain()


def block_edge_cases(kernel: Kernel) -> Iterator[GemmProblem]:
    """Under, at and over one and two blocks of 24 x 16 x 48, and several blocks with a thin last one."""
    extents = ((1, 23, 24, 25, 48, 61), (1, 47, 48, 49, 130), (1, 15, 16, 17, 21, 33, 70))
    scalars = itertools.cycle([(1.0, 0.0), (0.5, 1.0), (1.0, -0.5)])
    for layout, m, n, k in itertools.product(kernel.layouts, *extents):
        if (m + n + k) % 3 == 0 or m * n * k > 300_000:
            alpha, beta = next(scalars)
            yield GemmProblem(m, n, k, alpha, beta).with_layout(layout)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize(
    "kernel", names([kernel for kernel in CPU_KERNELS if any(name in kernel.params for name in BLOCK_NAMES)])
)
def test_tiny_cache_blocks_make_every_edge_occur(kernel: Kernel, lanes: int) -> None:
    needs_width(lanes)
    tried = 0
    for blocks in TINY_BLOCKS:
        config = {name: value for name, value in blocks.items() if name in kernel.params}
        if not kernel.legal({**kernel.params, **config}):
            config["NC"] = 16 * (config["NC"] // 16)
        if not kernel.legal({**kernel.params, **config}):
            continue
        config["LANES"] = lanes
        tried += 1
        report = check_kernel(kernel, CpuDevice(), GemmOp(), config=config, cases=block_edge_cases(kernel))
        assert report.passed, report.explain()
        assert report.cases > 60
    assert tried


@pytest.mark.parametrize("kernel", names([kernel for kernel in CPU_KERNELS if kernel.threaded]))
def test_the_number_of_threads_does_not_change_a_bit(kernel: Kernel) -> None:
    op, rng = GemmOp(), np.random.default_rng(5)
    for problem in (
        GemmProblem(301, 277, 203),
        GemmProblem(13, 1025, 900, 0.7),
        GemmProblem(2100, 1, 500, trans_b=True),
    ):
        contents = op.fill(problem, rng)
        results = set()
        for threads in (1, 2, 3, 7, 64):
            arrays = {name: array.ravel().copy() for name, array in contents.items()}
            bind(kernel, CpuDevice(), op, problem, arrays, threads=threads).run()
            results.add(arrays["c"].tobytes())
        assert len(results) == 1


@pytest.mark.slow
def test_no_kernel_reads_or_writes_beyond_its_operands() -> None:
    script = SUPPORT / "fenced.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False)
    last = done.stdout.splitlines()[-1:] or [""]
    assert (done.returncode, last) == (0, ["all right"]), f"died at {last[0]!r}: {done.stderr[-500:]}"


def test_an_unknown_kernel_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean microkernel"):
        find_kernel("micro_kernel")
    with pytest.raises(UsageError, match=r"no kernel named .xyzzy.; `gemmlab list` prints all [0-9]+$"):
        find_kernel("xyzzy")


def test_configurations_are_checked() -> None:
    packed = find_kernel("packed")
    with pytest.raises(UsageError, match="unknown parameter 'XY'"):
        packed.configure({"XY": 1})
    for wrong, broken in (({"NC": 17}, "NC % 16 == 0"), ({"NC": 0}, "NC > 0"), ({"KC": 0}, "KC > 0")):
        values = " ".join(f"{name}={value}" for name, value in {**packed.params, **wrong}.items())
        with pytest.raises(UsageError, match=rf"^packed: {values} breaks the kernel's constraints: {broken}$"):
            packed.configure(wrong)
    with pytest.raises(UsageError, match=r"constraints: MC, KC, NC, MR, NV >= 0 and 0 <= SERIAL <= 40$"):
        find_kernel("threaded").configure({"SERIAL": 99})
    configurations = list(packed.configurations())
    assert configurations[0] == dict(packed.params)
    assert len({tuple(config.items()) for config in configurations}) == len(configurations)


@pytest.mark.parametrize("name", ["naive_ijk", "cache_block", "microkernel", "threaded"])
def test_configurations_that_are_the_same_code_are_one(name: str) -> None:
    kernel = find_kernel(name)
    found = list(kernel.configurations())
    widest = host_target().lanes
    # The default has the widest vectors, by the name 0.
    assert found[0]["LANES"] == 0
    same = {**found[0], "LANES": widest}
    assert kernel.meant(same) == kernel.meant(found[0])
    assert same not in found
    assert {config["LANES"] for config in found} >= {width for width in WIDTHS if width < widest}


def test_blocks_that_the_formula_gives_are_one_configuration_with_its_figures() -> None:
    kernel = find_kernel("threaded")
    formula = kernel.meant(kernel.configure())
    assert 0 not in formula.values()
    assert kernel.legal(formula)
    stated = {name: (value,) for name, value in formula.items()}
    assert list(kernel.among(stated)) == [dict(kernel.params)]
    other = {**stated, "KC": (2 * formula["KC"],)}
    assert len(list(kernel.among(other))) == 2


def test_a_processor_with_narrow_vectors_lists_the_wide_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cpu_kernel, microkernel):
        monkeypatch.setattr(module, "host_target", lambda lanes=None: host_target(lanes or min(WIDTHS)))
    found = list(find_kernel("microkernel").configurations())
    assert {config["LANES"] for config in found} == {0, *WIDTHS}
    assert {**found[0], "LANES": min(WIDTHS)} not in found
    assert {**found[0], "LANES": max(WIDTHS)} in found


def test_a_width_that_is_not_there_is_refused() -> None:
    with pytest.raises(DeviceError, match="no vector width of 5"):
        host_target(5)
    widest = host_target().lanes
    if widest < max(WIDTHS):
        with pytest.raises(DeviceError, match=f"at most {widest}"):
            host_target(max(WIDTHS))


def test_a_program_for_another_processor_is_refused() -> None:
    device, kernel = CpuDevice(), find_kernel("naive_ijk")
    target = device.target({})
    program = kernel.program(kernel.configure(), target)
    foreign = kernel.program(kernel.configure(), f"{':'.join(target.split(':')[:2])}:another-processor")
    with pytest.raises(DeviceError, match="another-processor"):
        device.build(foreign)
    assert device.build(program).kernel == "naive_ijk"


def test_a_kernel_of_one_thread_refuses_two() -> None:
    device, kernel = CpuDevice(), find_kernel("naive_ijk")
    loaded = device.load(device.build(kernel.program(kernel.configure(), device.target({}))))
    with pytest.raises(UsageError, match="naive_ijk runs on one thread, not 2"):
        device.launch(loaded, Launch(args=(), threads=(2, 1, 1)))


@pytest.mark.parametrize("kernel", names(CPU_KERNELS))
def test_an_emitted_program_is_the_same_each_time(kernel: Kernel) -> None:
    config = kernel.configure()
    first, second = (kernel.program(config, CpuDevice().target(config)) for _ in range(2))
    assert first.fingerprint == second.fingerprint != ""
    assert first.emit() == second.emit()
