"""The way from a kernel to loaded code: its instance for a problem, built and loaded on a device.

Library calls make the launches of an instance before there is memory: each pointer is 0, and each call fills in its
addresses. `bound.py` binds a kernel to existing memory instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from gemmlab.core.program import Config, Launch
from gemmlab.core.tensor_map import BYTES
from gemmlab.devices.device import Device
from gemmlab.kernels.kernel import Bound, Kernel
from gemmlab.kernels.names import map_over

_NOWHERE = np.uint64(0)
_WORD_BYTES = 8
_MAP_WORDS = BYTES // _WORD_BYTES


def load(kernel: Kernel, device: Device, parameters: Config) -> Any:
    """Return the code of a kernel with these compile-time parameters, loaded on a device: a `Loaded`.

    Raises `CompileError`, `DeviceError` for parameters or a kernel that no target of the device supports, and
    `UsageError` for a kernel in a language that the device does not compile.
    """
    return device.load(device.build(kernel.program(parameters, device.target(parameters))))


class LoadedCode:
    """The code of CUDA kernels on one device, each program loaded once, for as long as this object lives."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._by_program: dict[str, Any] = {}

    def load(self, kernel: Kernel, parameters: Config) -> Any:
        """Return what the function `load` returns, loaded by this or an earlier call.

        Code is found by the program's fingerprint, because different parameters may give the same code.
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
        """Return the positions of the named arguments in the kernel's signature, in the order of `names`.

        Names that the kernel does not take are left out.
        """
        return tuple(self.kernel.args.index(name) for name in names if name in self.kernel.args)

    def words(self, *names: str) -> tuple[int, ...]:
        """Return, as `places` does, the positions of arguments in 64-bit words from the start of the first argument.

        An operand that is passed as a tensor map is at the map's first word, which is the operand's address. The result
        is empty if there are no launches.
        """
        starts = self._starts()
        known = {map_over(name): name for name in names}
        order = [known.get(name, name) for name in self.kernel.args]
        return tuple(starts[order.index(name)] for name in names if name in order and starts)

    def further_words(self, *names: str) -> tuple[tuple[int, int, int], ...]:
        """Return the other words that hold addresses of operands: those of the second to last map of an operand with
        several, each as (index of the operand in `names`, position as in `words`, bytes from the operand's address).
        The result is empty if there are no launches.
        """
        found = []
        for name, start, value in zip(self.kernel.args, self._starts(), self._first_args, strict=False):
            for index in (at for at, each in enumerate(names) if map_over(each) == name):
                words = np.frombuffer(value.tobytes(), np.uint64)
                found += [(index, start + at, int(words[at])) for at in range(_MAP_WORDS, len(words), _MAP_WORDS)]
        return tuple(found)

    @property
    def _first_args(self) -> tuple[Any, ...]:
        """The arguments of the first launch; empty if there are no launches."""
        return self.launches[0].args if self.launches else ()

    def _starts(self) -> list[int]:
        """Return the start of each argument of the first launch, in 64-bit words from the start of the first argument.

        The list is empty if there are no launches.
        """
        args = self._first_args
        return list(accumulate((-(-argument.nbytes // _WORD_BYTES) for argument in args), initial=0))[: len(args)]


def instance_for(kernel: Kernel, config: Config, scalars: Bound, **values: Any) -> Instance:
    """Return the instance for a problem, without building it. Raises `UsageError` for an impossible launch.

    `scalars` is what `Op.scalars` returns for the problem; `values` replace or add arguments in the launches.
    """
    parameters = kernel.instantiate(config, scalars)
    launches = kernel.launches(parameters, {**dict.fromkeys(kernel.args, _NOWHERE), **scalars, **values})
    return Instance(kernel, parameters, tuple(launches))
