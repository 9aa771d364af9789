"""Studies of a page's kernels: an explanation, a prediction and pictures of each, made in parallel processes.

A study contains only plain values, which can pass between processes; an `Explanation` cannot, because it contains
functions and traces.
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
"""Number of kernels from which starting a second interpreter saves time."""
_MOST_PROCESSES = 8
"""Largest number of processes: each takes a few hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Request:
    """The code to explain and the GPU to explain it for; empty fields mean the defaults."""

    kernel: str
    """Id or source file of the kernel."""
    config: tuple[tuple[str, int], ...] = ()
    arch: str = ""
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """The study of one kernel's current code."""

    explanation: Mapping[str, Any] | None
    """`Explanation.to_json()`; `None` for a CPU kernel, which only has pictures."""
    figures: tuple[tuple[str, str, str], ...] = ()
    """Figures as (group, name, text)."""
    hazards: tuple[str, ...] = ()
    prediction: Mapping[str, Any] | None = None
    """`QuotedPrediction.to_json()`, the predicted time; `None` if the model cannot predict it."""
    drawings: tuple[Drawing, ...] = ()
    undrawn: str = ""
    """Reason why drawing the pictures failed; empty if it did not, even if no picture applies."""


Outcome = Study | str
"""A study, or the reason why it failed."""


def study(request: Request) -> Outcome:
    """Explain a GPU kernel, predict its time and draw its pictures; for a CPU kernel, only draw its pictures.

    `GemmlabError` and `MemoryError` are not raised: their text is returned. If only the prediction or the pictures
    fail, the study lacks these.
    """
    from gemmlab.analysis.explanation import explain
    from gemmlab.analysis.subject import machine
    from gemmlab.kernels.by_name import kernel_named

    try:
        kernel, config = kernel_named(request.kernel), dict(request.config)
        if kernel.device != "cuda":
            return _with_pictures(Study(None), kernel, "", config)
        arch, model = machine(request.arch, request.gpu)
        explained = explain(kernel, arch, model, config)
        explained, prediction = _predicted(explained)
        found = replace(_explained(explained), prediction=prediction)
        return _with_pictures(found, kernel, arch, config)
    except (GemmlabError, MemoryError) as error:
        return str(error) or type(error).__name__


@contextmanager
def studies(requests: Sequence[Request]) -> Iterator[Iterator[tuple[Request, Outcome]]]:
    """Yield an iterator over the requests and their outcomes, in the order in which they are done.

    With several CPUs and enough requests, the studies run in processes while the caller works; otherwise each runs when
    the iterator is asked for it.
    """
    workers = min(len(usable_cpus()), len(requests), _MOST_PROCESSES)
    if workers < 2 or len(requests) < _WORTH_A_PROCESS:
        yield ((request, study(request)) for request in requests)
        return
    # Compiled code has started threads, which a forked child would lack: hence `spawn`.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(study, request): request for request in requests}
        try:
            yield ((futures[future], future.result()) for future in as_completed(futures))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _with_pictures(found: Study, kernel: Kernel, arch: str, config: Mapping[str, int]) -> Study:
    from gemmlab.plots.pictures.catalog import pictures_for
    from gemmlab.plots.pictures.drawing import Subject

    try:
        pictures = pictures_for(Subject(kernel, arch, config))
    except (GemmlabError, MemoryError) as error:
        # A kernel that can be explained may still be too large to be traced.
        return replace(found, undrawn=str(error) or type(error).__name__)
    drawings = (Drawing(picture.title, picture.caption, specification(picture.chart)) for picture in pictures)
    return replace(found, drawings=tuple(drawings))


def _predicted(explained: Explanation) -> tuple[Explanation, dict[str, Any] | None]:
    """Return the explanation with the predicted gains of its advice, and the prediction as JSON values.

    If the model cannot predict the kernel, return the explanation as it is, and `None`.
    """
    from gemmlab.analysis.model.quoted_prediction import modelled, quote, with_predicted_gains

    subject = explained.subject
    if subject.kernel is None:
        return explained, None
    try:
        known = modelled(subject.kernel, subject.arch, subject.model, subject.config)
        prediction = quote(known, subject.kernel, subject.config).to_json()
        return with_predicted_gains(explained, known), prediction
    except (GemmlabError, MemoryError):
        return explained, None


def _explained(explained: Explanation) -> Study:
    from gemmlab.analysis.figures import figures

    return Study(
        explanation=explained.to_json(),
        figures=tuple((figure.group, figure.name, figure.text) for figure in figures(explained)),
        hazards=tuple(hazard.explain() for hazard in explained.subject.hazards),
    )
