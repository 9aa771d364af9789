"""The `reduce_peak` kernel on arrays of other packages: `gemmlab.sum` on a GPU.

A sum is one launch on the caller's stream. Nothing is copied to the host and nothing waited for.
"""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import kernels
from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.arrays.packages import PER_THREAD_STREAM, package_of
from gemmlab.core.argument_checks import dtype_error
from gemmlab.core.errors import UsageError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import WordsLaunch
from gemmlab.devices.cuda_driver import open_driver, preserved_context
from gemmlab.devices.cuda_memory import CudaBuffer, ordinal_of
from gemmlab.dispatch.lending import hold
from gemmlab.dispatch.results import as_its_package_s, place_for
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.ops.reduce import LARGEST_LENGTH, ReduceOp, ReduceProblem

_FILE = Path(str(kernels.__file__)).parent / "reduce_cuda" / "reduce_peak.cu"
_MOST_LAUNCHES = 256


class CudaSums:
    """Sums of contiguous float32 on one GPU.

    The kernel's blocks share a workspace. Launches on one stream run one after another and share one workspace; each
    stream has its own, which lives as long as this object.
    """

    def __init__(self, ordinal: int) -> None:
        self.device = device = CudaDevice(ordinal)
        self._kernel = kernel = shipped_kernel(_FILE)
        self._instance = kernel.instantiate(kernel.configure(), ReduceOp().scalars(ReduceProblem(1)))
        self._loaded = device.load(device.build(kernel.program(self._instance, device.target(self._instance))))
        self._workspace_bytes = kernel.workspace_bytes(ReduceProblem(LARGEST_LENGTH), self._instance)
        self._workspaces: dict[tuple[int, int], CudaBuffer] = {}
        self._launches: dict[int, WordsLaunch] = {}
        self._lock = threading.Lock()

    def total(self, n: int, x: int, out: int, stream: int) -> None:
        """Queue on `stream`: write the sum of the `n` contiguous elements at `x` to `out`."""
        workspace = self._workspace(stream)
        launch = self._launches.get(n) or self._launch(n)
        self.device.activate()
        block = launch.take()
        block.words[1], block.words[2], block.words[3] = x, out, workspace.address
        launch.enqueue(stream, block)
        launch.give(block)

    def _launch(self, n: int) -> WordsLaunch:
        pointers = dict.fromkeys(("x", "out", "workspace"), np.uint64(0))
        (launch,) = self._kernel.launches(self._instance, {**ReduceOp().scalars(ReduceProblem(n)), **pointers})
        found = self.device.words_launch(self._loaded, launch)
        if len(self._launches) < _MOST_LAUNCHES:
            self._launches[n] = found
        return found

    def _workspace(self, stream: int) -> CudaBuffer:
        key = stream, threading.get_ident() if stream == PER_THREAD_STREAM else 0
        with self._lock:
            found = self._workspaces.get(key)
            if found is None:
                found = self._workspaces[key] = self.device.upload(np.zeros(self._workspace_bytes, np.uint8))
            return found


_sums: dict[int, CudaSums] = {}
_lock = threading.Lock()


def device_sum(x: Any, found: DeviceArray, shape: tuple[int, ...], first: int, whole: bool) -> Any:
    """The sum of all elements of `x`, as an array of its package and of `shape`, which has one element.

    `first` is the lowest address of its elements; `whole` says whether they fill the memory from there on. Raises
    `ArgumentTypeError`, `UsageError`, `DeviceError` and `CompileError`, and says what would be right.
    """
    package = package_of(x)
    if found.dtype != np.float32:
        raise dtype_error("sum", "x", found.dtype, package.to_float32 if package else "")
    if math.prod(shape) != 1:
        instead = f"; {package.along_axis} does" if package else ""
        raise UsageError(f"sum: on a GPU all elements are summed into one, not into shape {shape}{instead}")
    if not whole:
        how = package.contiguous if package else "a contiguous copy"
        what = f"x of shape {found.shape} and strides {found.strides} bytes"
        raise UsageError(f"sum: {what} has gaps or overlaps in memory; on a GPU pass {how}")
    with preserved_context():
        sums = _on(ordinal_of(open_driver(), found) or 0)
        place = place_for(x, found, shape, sums.device)
        sums.total(math.prod(found.shape), first, place.pointer, place.stream)
        hold(open_driver(), [found], place.stream)
    return as_its_package_s(x, place.array)


def _on(ordinal: int) -> CudaSums:
    with _lock:
        if ordinal not in _sums:
            _sums[ordinal] = CudaSums(ordinal)
        return _sums[ordinal]
