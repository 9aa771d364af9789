"""Memory of others that is lent by DLPack: kept until what was queued on it is done.

Who lends it may use it again as soon as it is given back, on a stream that knows nothing of ours. Nothing waits: what
is done is given back when the next is held.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.devices.cuda_driver import Driver, recorded

_held: deque[tuple[Any, list[Any]]] = deque()
"""Events and what is to be kept until they come, in the order of the calls."""
_lock = threading.Lock()


def hold(driver: Driver, arrays: Sequence[DeviceArray], stream: int) -> None:
    """Keep those of `arrays` that are lent until the work is done that is on `stream` by now."""
    lent = [array.owner for array in arrays if array.lent]
    if not lent:
        return
    event = recorded(driver, stream)
    with _lock:
        _held.append((event, lent))
        while not driver.module.cuEventQuery(_held[0][0])[0]:
            driver("cuEventDestroy", _held.popleft()[0])
            if not _held:
                return
