"""What a picture is, and what it is drawn of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.observe.tracing import trace_order, trace_whole
from gemmlab.plots.chart import Written
from gemmlab.sass.instruction import SassFunction


class Subject:
    """A kernel in one configuration. What pictures need of it is made when one first asks, and kept."""

    def __init__(
        self, kernel: Kernel, arch: str = "sm_90", config: Mapping[str, int] | None = None, problem: Any = None
    ) -> None:
        """`problem`: what is traced; by default a small one that the kernel takes. `UsageError` for `config`."""
        self.kernel = kernel
        self.arch = arch
        self.config = kernel.configure(config)
        self._problem = problem

    @property
    def asked(self) -> Any:
        """The problem that was asked for; `None` for what each picture thinks best."""
        return self._problem

    @property
    def on_gpu(self) -> bool:
        """Whether there is machine code of a GPU, and so a trace."""
        return self.kernel.device == "cuda"

    @cached_property
    def trace(self) -> KernelTrace:
        """The first block of a small problem, step by step. `UsageError` for a kernel that cannot be traced."""
        return trace_whole(self.kernel, self.arch, self.config, self._problem)

    @cached_property
    def order(self) -> KernelTrace | None:
        """What each block writes where there are many; `None` where the kernel takes no such problem."""
        return trace_order(self.trace)

    @property
    def function(self) -> SassFunction:
        """The machine code."""
        return self.trace.function


@dataclass(frozen=True, slots=True)
class Drawing:
    """One kind of picture. A module of this folder that is one has it as `DRAWING`."""

    name: str
    """Of the picture and its file: the module's."""
    place: int
    """Among all pictures of a kernel, lowest first."""
    title: str
    caption: str
    """One sentence: how to read it."""
    applies: Callable[[Subject], bool]
    """Whether there is something to draw."""
    draw: Callable[[Subject], Written]


@dataclass(frozen=True, slots=True)
class Picture:
    """One drawn picture of one kernel; `plots.chart.save` writes its chart."""

    name: str
    title: str
    caption: str
    chart: Written
