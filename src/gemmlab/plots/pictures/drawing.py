"""Types of pictures: the kind of a picture, its subject and the drawn picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gemmlab.core.notebook_view import Display, View
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.observe.tracing import trace_order, trace_whole
from gemmlab.plots.chart import VegaChart, svg
from gemmlab.sass.instruction import SassFunction


class Subject:
    """A kernel in one configuration, with its traces, which are made at first use and cached."""

    def __init__(
        self, kernel: Kernel, arch: str = "sm_90", config: Mapping[str, int] | None = None, problem: Any = None
    ) -> None:
        """Choose a kernel and the problem to draw; by default each picture chooses a small one that the kernel takes.

        Raises `UsageError` for an invalid `config`.
        """
        self.kernel = kernel
        self.arch = arch
        self.config = kernel.configure(config)
        self._problem = problem

    @property
    def problem(self) -> Any:
        """The requested problem; `None` if each picture chooses its own."""
        return self._problem

    @property
    def on_gpu(self) -> bool:
        """True for a GPU kernel, which has machine code and a trace."""
        return self.kernel.device == "cuda"

    @cached_property
    def trace(self) -> KernelTrace:
        """Complete trace of the first block of a GPU kernel (`trace_whole`), for `problem` or a small one.

        Raises the errors of `trace_whole`.
        """
        return trace_whole(self.kernel, self.arch, self.config, self._problem)

    @cached_property
    def deep(self) -> KernelTrace:
        """Complete trace like `trace`, but the small problem has, if possible, many steps along k, so that a ring of
        stages fills.

        Raises the errors of `trace_whole`.
        """
        return trace_whole(self.kernel, self.arch, self.config, self._problem, deep=True)

    @cached_property
    def order(self) -> KernelTrace | None:
        """Trace of the addresses that each of many blocks writes; `None` if `trace_order` cannot trace the kernel."""
        return trace_order(self.trace)

    @property
    def function(self) -> SassFunction:
        """Machine code of the kernel."""
        return self.trace.function


@dataclass(frozen=True, slots=True)
class Drawing:
    """One kind of picture. Each module of this folder that makes a picture defines it as `DRAWING`."""

    name: str
    """Name of the picture and its file, equal to the module's name."""
    place: int
    """Sort key among the pictures of a kernel, lowest first."""
    title: str
    caption: str
    """Explanation of how to read the picture."""
    applies: Callable[[Subject], bool]
    """Function that returns True if the picture can be drawn of a subject."""
    draw: Callable[[Subject], VegaChart]
    """Function that draws the picture of a subject to which it applies."""


@dataclass(frozen=True, slots=True, repr=False)
class Picture(Display):
    """One drawn picture of one kernel; `plots.chart.save` writes its chart."""

    name: str
    title: str
    caption: str
    chart: VegaChart

    def _line(self) -> str:
        return f"{self.name}: {self.title}"

    def _view(self) -> View:
        return View(self.title, images=((svg(self.chart), self.title),), notes=(self.caption,))
