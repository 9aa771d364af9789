"""The search space of a kernel: every configuration that its file's header allows, as values and as coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config
from gemmlab.core.words import assignments
from gemmlab.kernels.kernel import Kernel

Float64Array = npt.NDArray[np.float64]
Values = tuple[int, ...]
"""A configuration as the values of its parameters, in the order of `Space.names`."""
MOST_COMBINATIONS = 1 << 20
"""The most combinations of values that are tested for legality."""


@dataclass(frozen=True)
class Space:
    """The configurations to choose from; a configuration's number is its index.

    In a kernel's own space (`space_of`) all are legal and the default is number 0; a recorded one (`space_from`) keeps
    its order.
    """

    names: tuple[str, ...]
    members: tuple[Values, ...]

    @cached_property
    def places(self) -> Mapping[Values, int]:
        """Values of a configuration -> its number."""
        return {values: place for place, values in enumerate(self.members)}

    def __len__(self) -> int:
        return len(self.members)

    def config(self, place: int) -> dict[str, int]:
        """Return a configuration, by its number, as parameter name -> value."""
        return dict(zip(self.names, self.members[place], strict=True))

    def place(self, config: Config) -> int | None:
        """Return the number of a configuration; `None` if it is not in the space."""
        try:
            return self.places.get(tuple(config[name] for name in self.names))
        except KeyError:
            return None

    def text(self, place: int) -> str:
        """Return a configuration as text, such as `"BM=64 BN=32"`."""
        return assignments(self.config(place))

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The names of the parameters that have more than one value in the space."""
        columns = zip(*self.members, strict=True)
        return tuple(name for name, column in zip(self.names, columns, strict=True) if len(set(column)) > 1)

    @cached_property
    def points(self) -> Float64Array:
        """Coordinates from 0 to 1: a row for each configuration, a column for each of `axes`.

        They are proportional to the logarithms of a parameter's values, or to their ranks if one is 0 or negative.
        """
        found = np.zeros((len(self.members), len(self.axes)))
        for column, name in enumerate(self.axes):
            at = self.names.index(name)
            values = np.array([values[at] for values in self.members], np.float64)
            if values.min() <= 0:
                values = np.searchsorted(np.unique(values), values).astype(np.float64)
            else:
                values = np.log2(values)
            found[:, column] = (values - values.min()) / (values.max() - values.min())
        return found


def space_of(kernel: Kernel) -> Space:
    """Return the space of a kernel: all legal combinations of the values of `tune` and `search` in its header.

    If several configurations are the same code on this machine, the space has one of them. Raises `UsageError` for a
    kernel that states no values to tune (the message shows how to state them), or more than `MOST_COMBINATIONS`.
    """
    ranges = ranges_of(kernel)
    if not ranges:
        raise UsageError(_nothing_to_tune(kernel))
    combinations = int(np.prod([len(values) for values in ranges.values()], dtype=np.float64))
    if combinations > MOST_COMBINATIONS:
        raise UsageError(
            f"{kernel.id}: {combinations:,} combinations of values; at most {MOST_COMBINATIONS:,} are searched: state "
            "fewer values in `tune`"
        )
    names = tuple(kernel.params)
    return Space(names, tuple(tuple(config[name] for name in names) for config in kernel.among(ranges)))


def ranges_of(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    """Return parameter name -> values to try: those of `tune`, then further ones of `search`."""
    return {
        name: tuple(dict.fromkeys((*kernel.tune.get(name, ()), *kernel.search.get(name, ()))))
        for name in dict.fromkeys((*kernel.tune, *kernel.search))
    }


def space_from(names: Sequence[str], configs: Sequence[Config]) -> Space:
    """Return the space of recorded configurations in their order, each once."""
    return Space(tuple(names), tuple(dict.fromkeys(tuple(config[name] for name in names) for config in configs)))


def _nothing_to_tune(kernel: Kernel) -> str:
    if not kernel.params:
        return (
            f"{kernel.id} has no parameters to tune: make a size of it a template parameter or a macro "
            "(`#ifndef BM`), and state its value and those to try in the header: `params = { BM = 64 }`, "
            "`tune = { BM = [32, 64, 128] }`"
        )
    name, value = next(iter(kernel.params.items()))
    tries = ", ".join(str(each) for each in sorted({max(1, value // 2), value, 2 * value}))
    return (
        f"{kernel.id} states no values to try: write for example `tune = {{ {name} = [{tries}] }}` into its "
        "`/* gemmlab` comment, and state with `require` which combinations are legal"
    )
