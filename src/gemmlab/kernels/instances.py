"""The way from a kernel to loaded code: its instance for a problem, built and loaded on a device.

Launches of an instance for library calls are made without memory: each pointer is 0, and each call fills in its
addresses. `bound.py` binds a kernel to existing memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from gemmlab.core.program import Config, Launch
from gemmlab.devices.device import Device
from gemmlab.kernels.kernel import Bound, Kernel
from gemmlab.kernels.names import map_over

_NOWHERE = np.uint64(0)
_WORD_BYTES = 8


def load(kernel: Kernel, device: Device, parameters: Config) -> Any:
    """Return the code of a kernel with these compile-time parameters, loaded on a device: a `Loaded`.

    Raises `CompileError`, `UsageError` for parameters that no target of the device supports, and `DeviceError`.
    """
    return device.load(device.build(kernel.program(parameters, device.target(parameters))))


class LoadedCode:
    """The code of kernels on one device, each program loaded once, for as long as this object lives."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._by_program: dict[str, Any] = {}

    def load(self, kernel: Kernel, parameters: Config) -> Any:
        """Return loaded code as the function `load` does. Its key is the program's fingerprint, because parameters do
        not identify code.
        """
        program = kernel.program(parameters, self._device.target(parameters))
        if program.fingerprint not in self._by_program:
            self._by_program[program.fingerprint] = self._device.load(self._device.build(program))
        return self._by_program[program.fingerprint]


@dataclass(frozen=True, slots=True)
class Instance:
    """A kernel with the compile-time parameters for a problem, and its launches, in which each pointer is 0."""

    kernel: Kernel
    parameters: Mapping[str, int]
    launches: tuple[Launch, ...]

    def places(self, *names: str) -> tuple[int, ...]:
        """Return the positions of arguments, in the order of `names`, without those that the kernel does not take."""
        return tuple(self.kernel.args.index(name) for name in names if name in self.kernel.args)

    def words(self, *names: str) -> tuple[int, ...]:
        """Return the positions of arguments among the 64-bit words of all, as `places` does. For an operand with a
        tensor map it is the position of the map's first word, which is the operand's address.
        """
        args = self.launches[0].args if self.launches else ()
        starts = list(accumulate((-(-argument.nbytes // _WORD_BYTES) for argument in args), initial=0))
        known = {map_over(name): name for name in names}
        order = [known.get(name, name) for name in self.kernel.args]
        return tuple(starts[order.index(name)] for name in names if name in order and args)


def instance_for(kernel: Kernel, config: Config, scalars: Bound, **values: Any) -> Instance:
    """Return the instance for a problem, given by `Op.scalars`; `values` replace some of them. Nothing is built.

    Raises `UsageError` for an impossible launch.
    """
    parameters = kernel.instantiate(config, scalars)
    launches = kernel.launches(parameters, {**dict.fromkeys(kernel.args, _NOWHERE), **scalars, **values})
    return Instance(kernel, parameters, tuple(launches))
