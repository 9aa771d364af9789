"""What the emulator and the machine code say of a page's kernels: one explanation each, made in processes side by side.

An explanation holds functions and traces; what crosses to the page, and between processes, is plain values.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import GemmlabError
from gemmlab.core.hardware import usable_cpus
from gemmlab.pages.charts import Drawing
from gemmlab.plots.chart import specification

if TYPE_CHECKING:
    from gemmlab.analysis.explanation import Explanation
    from gemmlab.kernels.kernel import Kernel

_WORTH_A_PROCESS = 3
"""So many kernels take longer than starting a second interpreter."""
_MOST_PROCESSES = 8
"""Each takes a few hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which code to explain, and for what."""

    kernel: str
    """Its id, or its file."""
    config: tuple[tuple[str, int], ...] = ()
    arch: str = ""
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """One kernel as its code is now."""

    explanation: Mapping[str, Any] | None
    """`Explanation.to_json()`; `None` of a kernel for a CPU, which only has pictures."""
    figures: tuple[tuple[str, str, str], ...] = ()
    """Group, name, text."""
    hazards: tuple[str, ...] = ()
    foretold: Mapping[str, Any] | None = None
    """`Foretold.to_json()`: a predicted time; `None` where the model cannot tell."""
    drawings: tuple[Drawing, ...] = ()
    undrawn: str = ""
    """Why it has no pictures, where that is not because none applies."""


Outcome = Study | str
"""Or why there is none."""


def study(request: Request) -> Outcome:
    """Explain a kernel for a GPU, and draw its pictures."""
    from gemmlab.analysis.explanation import explain
    from gemmlab.analysis.subject import machine
    from gemmlab.kernels.by_name import kernel_named

    try:
        kernel, config = kernel_named(request.kernel), dict(request.config)
        if kernel.device != "cuda":
            return _with_pictures(Study(None), kernel, "", config)
        arch, model = machine(request.arch, request.gpu)
        explained = explain(kernel, arch, model, config)
        found = replace(_explained(explained), foretold=_foretold(explained))
        return _with_pictures(found, kernel, arch, config)
    except (GemmlabError, MemoryError) as error:
        return str(error) or type(error).__name__


@contextmanager
def studies(requests: Sequence[Request]) -> Iterator[Iterator[tuple[Request, Outcome]]]:
    """What became of each, as they are done. Where there are processes for it, they work while the caller does."""
    workers = min(len(usable_cpus()), len(requests), _MOST_PROCESSES)
    if workers < 2 or len(requests) < _WORTH_A_PROCESS:
        yield ((request, study(request)) for request in requests)
        return
    # Compiled code holds threads that a forked child would not have.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        asked = {pool.submit(study, request): request for request in requests}
        try:
            yield ((asked[future], future.result()) for future in as_completed(asked))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _with_pictures(found: Study, kernel: Kernel, arch: str, config: Mapping[str, int]) -> Study:
    from gemmlab.plots.pictures.catalog import pictures_for
    from gemmlab.plots.pictures.drawing import Subject

    try:
        pictures = pictures_for(Subject(kernel, arch, config))
    except (GemmlabError, MemoryError) as error:
        # What can be explained need not be small enough to be traced.
        return replace(found, undrawn=str(error) or type(error).__name__)
    drawings = (Drawing(picture.title, picture.caption, specification(picture.chart)) for picture in pictures)
    return replace(found, drawings=tuple(drawings))


def _foretold(explained: Explanation) -> dict[str, Any] | None:
    from gemmlab.analysis.model.quoted_prediction import foretell, modelled

    subject = explained.subject
    try:
        known = modelled(subject.kernel, subject.arch, subject.model, subject.config)
        return foretell(known, subject.kernel, subject.config).to_json()
    except (GemmlabError, MemoryError):
        return None


def _explained(explained: Explanation) -> Study:
    from gemmlab.analysis.figures import figures

    return Study(
        explanation=explained.to_json(),
        figures=tuple((figure.group, figure.name, figure.text) for figure in figures(explained)),
        hazards=tuple(hazard.explain() for hazard in explained.subject.hazards),
    )
