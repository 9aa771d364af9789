"""How an operation is done: the descriptor of one kernel, whatever device it runs on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config, Launch, Program


@dataclass(frozen=True, slots=True)
class Kernel:
    """Everything known of one kernel; made by the one file that defines it.

    `make_program(config, target)` and `make_launches(problem, config, bound)` are pure; `bound` maps
    each name in `args` to a NumPy scalar or a device buffer.
    """

    id: str
    op: str
    device: str
    """Family of devices it runs on: `"cpu"` or `"cuda"`."""
    step: int | None
    """Place on the ladder, lowest first; `None` for kernels that are not rungs."""
    summary: str
    """One line: what it is."""
    idea: str
    """One sentence: why it is faster than the rung below."""
    source: str
    """Where the technique comes from."""
    params: Config
    args: tuple[str, ...]
    """Argument names in signature order; `threads` and `workspace` are supplied by the caller of `launches`."""
    make_program: Callable[[Config, str], Program] = field(repr=False)
    path: Path
    precision: str = "float32"
    layouts: tuple[str, ...] = ("nn",)
    """Operand layouts the kernel reads in place; the front end copies for the others."""
    tune: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    legal: Callable[[Config], bool] = field(default=lambda _config: True, repr=False)
    workspace_bytes: Callable[[Any, Config], int] = field(default=lambda _problem, _config: 0, repr=False)
    threaded: bool = False
    """Whether it uses more than one CPU thread when given them."""

    def configure(self, overrides: Mapping[str, int] | None = None) -> dict[str, int]:
        """Default configuration with `overrides`; `UsageError` for an unknown or illegal parameter."""
        config = dict(self.params)
        for name, value in (overrides or {}).items():
            if name not in config:
                known = ", ".join(config) or "none"
                raise UsageError(f"{self.id}: unknown parameter {name!r} (parameters: {known})")
            config[name] = value
        if not self.legal(config):
            raise UsageError(f"{self.id}: configuration {config} breaks the kernel's constraints")
        return config

    def configurations(self) -> Iterator[dict[str, int]]:
        """Every legal configuration of the tuning space, the default first."""
        yield dict(self.params)
        names = list(self.tune)
        for values in itertools.product(*(self.tune[name] for name in names)):
            config = {**self.params, **dict(zip(names, values, strict=True))}
            if config != dict(self.params) and self.legal(config):
                yield config

    def program(self, config: Config, target: str) -> Program:
        """What a device has to build to run this kernel in `config`."""
        return self.make_program(config, target)

    def launches(self, bound: Mapping[str, Any], threads: int = 1) -> list[Launch]:
        """The calls one execution takes, given every argument by name."""
        return [Launch(args=tuple(bound[name] for name in self.args), threads=(threads, 1, 1))]
