"""Arrays against pages that nobody may touch: reading one element too far ends the process. Run as a script."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import DeviceError
from gemmlab.devices.cpu import CpuDevice
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem

Array = npt.NDArray[np.float32]
SHAPES = ((1, 1, 1), (5, 3, 7), (13, 33, 18), (25, 47, 65), (40, 100, 129), (1, 70, 33), (70, 1, 33), (12, 32, 16))


def fenced(count: int, *, at_end: bool) -> Array:
    """`count` float32 elements that end (or start) where a page begins (or ends) that faults."""
    page = mmap.PAGESIZE
    inside = -(-4 * count // page) * page
    memory = mmap.mmap(-1, inside + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for fence in (base, base + page + inside):
        if libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    start = page + (inside - 4 * count if at_end else 0)
    return np.frombuffer(memory, np.float32, count, start)


def say(text: str) -> None:
    """At once: the next thing may be the end of the process."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run_all(kernel: Kernel, lanes: int, op: GemmOp, rng: np.random.Generator) -> None:
    device = CpuDevice()
    for shape in SHAPES:
        for layout in kernel.layouts:
            for alpha, beta in ((1.0, 0.0), (0.5, -1.0)):
                problem = GemmProblem(*shape, alpha, beta).with_layout(layout)
                contents = op.fill(problem, rng)
                expected = op.reference(problem, contents)["c"]
                for at_end in (True, False):
                    arrays = {name: fenced(array.size, at_end=at_end) for name, array in contents.items()}
                    for name, array in contents.items():
                        arrays[name][...] = array.ravel()
                    say(f"{kernel.id} {lanes} {problem.label} {'end' if at_end else 'start'}")
                    threads = 2 if kernel.threaded else 1
                    bind(kernel, device, op, problem, arrays, config={"LANES": lanes}, threads=threads).run()
                    got = arrays["c"].reshape(shape[0], shape[1])
                    assert np.allclose(got, expected.values, rtol=1e-3, atol=1e-4)


def main() -> None:
    op, rng = GemmOp(), np.random.default_rng(0)
    for lanes in WIDTHS:
        try:
            host_target(lanes)
        except DeviceError:
            continue
        for kernel in ladder("gemm", "cpu"):
            if not kernel.unavailable():
                run_all(kernel, lanes, op, rng)
    say("all right")


if __name__ == "__main__":
    main()
