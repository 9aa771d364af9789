"""Memory borrowed from other packages by DLPack: a reference is held until the work queued on it is done.

As soon as the reference is dropped, the package may reuse the memory, on a stream that is not synchronised with ours.
No call waits for queued work: each that borrows memory drops the references of earlier calls whose work is done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from gemmlab.arrays.on_gpu import UNKNOWN, DeviceArray
from gemmlab.arrays.packages import package_of, stream_for
from gemmlab.devices.cuda_driver import Driver, order, recorded

_pending: deque[tuple[Any, list[Any]]] = deque()
"""(event, arrays to hold until it has completed), in the order of the calls."""
_lock = threading.Lock()


def hold(driver: Driver, arrays: Sequence[DeviceArray], stream: int) -> None:
    """Hold references to the borrowed ones of `arrays` until the work now queued on `stream` is done.

    If an array is borrowed, references of earlier calls are dropped, up to the first call whose work is not done.
    """
    borrowed = [array.owner for array in arrays if array.borrowed]
    if not borrowed:
        return
    event = recorded(driver, stream)
    with _lock:
        _pending.append((event, borrowed))
        while not driver.module.cuEventQuery(_pending[0][0])[0]:
            driver("cuEventDestroy", _pending.popleft()[0])
            if not _pending:
                return


def wait_for(driver: Driver, value: Any, array: DeviceArray, stream: int) -> None:
    """Make `stream` wait for the stream that computes an operand, if that is known and differs from `stream`."""
    making = stream_for(value, array)
    stated = package_of(value) is not None or array.stream not in (None, UNKNOWN)
    if making == stream or not stated:
        return
    order(driver, stream, making)
