"""Make a page from records: choose the kernels, explain them and render the page. `page_files` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.words import counted, nearest
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.by_name import is_own, kernel_named
from gemmlab.kernels.catalog import all_kernels, current_id
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.profile_reader import from_record, load_profiles
from gemmlab.pages.kernel_page import page_of
from gemmlab.pages.kernel_results import KernelResult, request_for, results_by_kernel
from gemmlab.pages.page import Page, anchors, render
from gemmlab.pages.parts import part_of
from gemmlab.pages.profile_section import stall_drawings
from gemmlab.pages.roofs import roof_drawings
from gemmlab.pages.sections import Section, section
from gemmlab.pages.studies import Outcome, Request, Study, studies
from gemmlab.pages.study_cache import keep, recall

Progress = Callable[[str, int, int], None]
"""A function that is called with (description of the step, kernels done, all kernels)."""
MOST_BYTES = 3 << 20
"""Size of a page, in bytes, above which the user is warned, because it is slow on a phone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The input and the options of a page."""

    records: Sequence[Path]
    kernels: Sequence[str] = ()
    """Ids and files of the kernels that get sections; by default all kernels of the records."""
    explained: bool = True
    """True if the kernels are to be explained, which runs them on the emulator."""
    profiles: Sequence[Path] = ()
    """Records of profiles or counts, which the kernels' sections show too."""
    gpu: str = ""
    """The GPU to explain for; by default the one that the code was timed on."""
    folder: str = ""
    """Folder of the kernels' own pages, relative to the page; none are made if it is empty."""


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """A page and its HTML."""

    page: Page
    html: bytes
    kernel_pages: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """HTML of the kernels' own pages, by their addresses relative to the page."""


def make(plan: Plan, progress: Progress = lambda _text, _done, _all: None) -> BuiltPage:
    """Make the page of a plan, in memory. Studies of kernels are taken from the cache, or made and stored there.

    Raises `RecordError` for a file that is no record, `UsageError` for an unknown kernel or GPU. A kernel that cannot
    be explained has a section with the reason.
    """
    if plan.gpu:
        from gemmlab.analysis.subject import machine

        machine("", plan.gpu)
    records = [read_record(path) for path in plan.records]
    profiles = [load_profiles(path) for path in plan.profiles]
    profiles += [from_record(record) for record in records if record.kind == "profile"]
    by_kernel = results_by_kernel(records)
    chosen = _chosen(plan.kernels, by_kernel)
    requests = _requests(plan, chosen, by_kernel)
    known = {request: study for request in requests.values() if (study := recall(request)) is not None}
    missing = [request for request in requests.values() if request not in known]
    with studies(missing) as running:
        parts = [part_of(path, record) for path, record in zip(plan.records, records, strict=True)]
        found: dict[Request, Outcome] = {**known, **_collected(running, len(missing), progress)}
    outcomes = {id_: found[request] for id_, request in requests.items()}
    sections = [
        section(name, kernel, by_kernel.get(name, []), outcomes.get(name), profiles)
        for name, (_, kernel) in chosen.items()
    ]
    own = _kernel_pages(plan.folder, sections, requests, progress) if plan.folder else {}
    sections = [replace(one, page=own[one.id][0]) if one.id in own else one for one in sections]
    waits = stall_drawings(profiles, chosen if plan.kernels else ())
    page = Page(parts, sections, (*roof_drawings(sections), *waits))
    return BuiltPage(page, render(page), dict(own.values()))


def _kernel_pages(
    folder: str, sections: Sequence[Section], requests: Mapping[str, Request], progress: Progress
) -> dict[str, tuple[str, bytes]]:
    """Return the page of each explained GPU kernel by its id, as (address, HTML).

    The kernels are explained again, one after another, because a study has no `Explanation`.
    """
    names = anchors(sections)
    explained = [one for one in sections if one.study is not None and one.study.explanation is not None]
    found: dict[str, tuple[str, bytes]] = {}
    for place, one in enumerate(explained):
        progress(f"the page of {one.id}", place, len(explained))
        found[one.id] = (f"{folder}/{names[one.id]}.html", page_of(requests[one.id]))
    return found


def _chosen(named: Sequence[str], by_kernel: dict[str, list[KernelResult]]) -> dict[str, tuple[str, Kernel | None]]:
    """Return the kernels that get sections, by id: (name or file by which the kernel is requested, the kernel).

    They are the kernels in `named`, or without names those in `by_kernel`. The kernel is `None` if only records know
    it. Raises `UsageError` for a name that is neither in the catalog nor in the records.
    """
    catalog = {kernel.id: kernel for kernel in all_kernels()}
    if named:
        named = [current_id(name) for name in named]
        files = {name: kernel_named(name) for name in named if is_own(name)}
        if unknown := [name for name in named if name not in {**files, **catalog, **by_kernel}]:
            names = [*by_kernel, *catalog]
            raise UsageError(f"no kernel named {unknown[0]!r}, nor in the records; {nearest(unknown[0], names)}")
        found = [(name, files.get(name) or catalog.get(name)) for name in named]
        return {name if kernel is None else kernel.id: (name, kernel) for name, kernel in found}
    return {name: (name, catalog.get(name)) for name in by_kernel}


def _requests(
    plan: Plan, chosen: dict[str, tuple[str, Kernel | None]], by_kernel: dict[str, list[KernelResult]]
) -> dict[str, Request]:
    """Return the requests for the kernels to be explained, by id; empty if the plan wants no explanations."""
    return {
        id_: request_for(kernel, name, by_kernel.get(id_, []), plan.gpu)
        for id_, (name, kernel) in chosen.items()
        if kernel is not None and plan.explained
    }


def _collected(running: Iterator[tuple[Request, Outcome]], count: int, progress: Progress) -> dict[Request, Outcome]:
    found: dict[Request, Outcome] = {}
    progress(f"{counted(count, 'kernel')} to explain", 0, count)
    for request, outcome in running:
        # Stored immediately, so that a run after an interruption need not repeat this study.
        if isinstance(outcome, Study):
            keep(request, outcome)
        found[request] = outcome
        progress(f"explained {request.kernel}", len(found), count)
    return found


def summary(sections: Sequence[Section]) -> list[dict[str, object]]:
    """Return the outcome of each kernel as JSON values.

    `same_code` is True if all records with a digest are of the explained code, and `None` if there is nothing to
    compare.
    """
    return [
        {
            "id": one.id,
            "explained": one.study is not None and one.study.explanation is not None,
            "why_not": one.why_not,
            "same_code": None if not (one.same or one.other) else not one.other,
        }
        for one in sections
    ]
