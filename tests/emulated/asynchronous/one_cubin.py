"""Machine code with every kernel of a source: a launch by name compiles the whole source for each name."""

from __future__ import annotations

from functools import cache

from gemmlab.devices.select import open_device
from gemmlab.launching.source import CudaText, read_source


@cache
def one_cubin(source: str, kernel: str, device: str, arch: str = "") -> bytes:
    """Return the machine code of CUDA C++, text or a file, one of whose kernels is `kernel`."""
    code, where = read_source(source), open_device(device)
    assert isinstance(code, CudaText)
    return where.build(code.program(kernel, arch or where.target({}), ())).code
