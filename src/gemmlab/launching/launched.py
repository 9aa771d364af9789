"""The outcome of a launch, and how a notebook shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from gemmlab.core.counters import Counters
from gemmlab.core.hazard import Hazard
from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.program import Artifact, Launch

if TYPE_CHECKING:
    from gemmlab.analysis.explanation import Explanation

Array = npt.NDArray[Any]
_FIRST = 6
"""Number of elements of an output that a notebook shows."""


@dataclass(frozen=True, slots=True, repr=False)
class Launched(Display):
    """The outcome of a launch."""

    outputs: list[Array] | dict[str, Array]
    """Copies in C order of all array arguments and of the arrays of tensor maps, made after the kernel has ended: a
    list in the order of the arguments, or a dictionary if arguments were passed by name.
    """
    counters: Counters | None
    """Counters of the launch; `None` if the device does not count."""
    hazards: tuple[Hazard, ...] | None
    """Hazards of the kernel; `None` if the device does not detect them."""
    device: str
    """The device's id, such as `"cuda:0"` or `"emulated:sm_90"`."""
    artifact: Artifact
    """The machine code that ran, with its compiler, digest, resources and texts."""
    request: Launch
    """Grid, threads and shared memory, without arguments."""
    stray: tuple[str, ...] = ()
    """Reads of unwritten memory that reach no output, in words: no hazards. The launch was repeated with other contents
    of that memory to find out.
    """

    def explain(self, gpu: str = "") -> Explanation:
        """Explain what limits the kernel on a GPU (`"A100"`; by default the emulator's model GPU of the code's
        architecture), from its machine code and its counters.

        `print(result.explain())` says it in words. Raises `UsageError` for a launch on a GPU, which has no counters,
        and for a GPU that cannot run the code.
        """
        from gemmlab.analysis.launch_subject import explain_launch

        return explain_launch(self.artifact, self.request, self.counters, self.hazards or (), gpu, self.stray)

    def _named(self) -> list[tuple[str, Array]]:
        """Return the outputs by their names, or by their numbers."""
        named = self.outputs.items() if isinstance(self.outputs, dict) else enumerate(self.outputs)
        return [(str(name), array) for name, array in named]

    def _line(self) -> str:
        """Return kernel, device, name or number, dtype and shape of each output, and the number of hazards."""
        outputs = ", ".join(f"{name}: {array.dtype} {array.shape}" for name, array in self._named()) or "none"
        hazards = "not looked for" if self.hazards is None else len(self.hazards)
        return f"{self.artifact.kernel} on {self.device}; outputs {outputs}; hazards: {hazards}"

    def _view(self) -> View:
        outputs = grid(
            ("output", "dtype", "shape", "first elements"),
            ((name, str(array.dtype), str(array.shape), ", ".join(map(str, array.ravel()[:_FIRST])))
             for name, array in self._named()),
            texts=range(4),
        )  # fmt: skip
        facts = {} if self.counters is None else self.counters.facts()
        counts = grid(("counted", ""), ((name.replace("_", " "), value) for name, value in facts.items() if value))
        blocks, threads = ("x".join(map(str, extents)) for extents in (self.request.grid, self.request.threads))
        texts = self.artifact.texts
        return View(
            f"{self.artifact.kernel} on {self.device}",
            "" if self.hazards is None else "HAZARDS" if self.hazards else "no hazards", not self.hazards,
            (f"grid {blocks}, threads {threads}", *(hazard.explain() for hazard in self.hazards or ())),
            (outputs, *([counts] if counts.rows else [])),
            notes=tuple(f"it {read}" for read in self.stray),
            folded=tuple((name, texts[name]) for name in ("sass", "ptx") if texts.get(name)),
        )  # fmt: skip
