"""The whole listing of one kernel: its code, columns of figures, pins, pictures and sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.listing.code import Code, code_of
from gemmlab.analysis.listing.figure_columns import Column, agreement, counted, measured, predicted
from gemmlab.analysis.listing.pictures import LanePicture, lane_pictures
from gemmlab.analysis.listing.pins import Pin, pins_of
from gemmlab.analysis.listing.samples import Samples, by_address, samples_for
from gemmlab.analysis.listing.source_files import SourceFile, source_files
from gemmlab.analysis.model.quoted_prediction import modelled
from gemmlab.analysis.run_verdict import run_verdict
from gemmlab.core.errors import GemmlabError, TimeLimitError
from gemmlab.observe.tracing import SIZES, small_problem, trace_kernel
from gemmlab.ops.catalog import find_op


@dataclass(frozen=True, slots=True)
class Listing:
    """A kernel's machine code and sources, with a column for each kind of figure per instruction."""

    code: Code
    sources: tuple[SourceFile, ...] = field(repr=False)
    columns: tuple[Column, ...] = ()
    pins: tuple[Pin, ...] = ()
    pictures: tuple[LanePicture, ...] = field(default=(), repr=False)
    facts: tuple[tuple[str, str], ...] = ()
    """(name, text) pairs: device and size of the counted run, occupancy, bound, agreement of prediction and profile.

    Empty for code that was not run; the last one only if both are in the listing.
    """
    notes: tuple[str, ...] = ()
    """Operands that the kernel reads though their factor is 0, and reasons why parts of the listing are missing."""
    verdict: str = ""
    """The outcome of the run: hazards, right or wrong results, and the bound. Empty for code that was not run."""
    sound: bool = True
    """False if the run had wrong results or hazards."""

    def column(self, name: str) -> Column | None:
        """Return the column of that name, `None` if the listing lacks it."""
        return next((one for one in self.columns if one.name == name), None)


def static_listing(
    code: Code, texts: Mapping[str, str] | None = None, samples: Sequence[Samples] = (), notes: Sequence[str] = ()
) -> Listing:
    """Return the listing of code that was not run, with these notes.

    `texts` has source texts by file name; other source files are read. `samples` are the launches of a profile: the
    first one of this code is listed. Raises `UsageError` if there are samples, but none of this code.
    """
    return Listing(code, source_files(code, texts), tuple(_measured(code, samples)), notes=tuple(notes))


def explained_listing(
    explained: Explanation, texts: Mapping[str, str] | None = None, samples: Sequence[Samples] = ()
) -> Listing:
    """Return the listing of an explained run, with the counts of the run, predicted cycles and pictures of accesses.

    If the model or the tracer cannot handle the kernel, a note says so. `texts` and `samples` are those of
    `static_listing`, as is the `UsageError` that is raised. Raises `TimeLimitError`, too.
    """
    subject = explained.subject
    code = code_of(subject.artifact, subject.config, subject.name)
    columns, notes = counted(subject.counters), [f"it {trait}" for trait in subject.traits]
    pictures: tuple[LanePicture, ...] = ()
    if subject.kernel is None:
        notes.append("A launch is not predicted, and its accesses are not traced.")
    else:
        try:
            model = modelled(subject.kernel, subject.arch, subject.model, subject.config)
            if model.study.digest == code.digest:
                columns += predicted(model.by_instruction())
            else:
                notes.append("No predicted cycles: the model studied another instance of this kernel.")
        except TimeLimitError:
            raise
        except (GemmlabError, MemoryError) as error:
            notes.append(f"No predicted cycles: {error}")
        pictures, why = _pictures(explained, code)
        notes += why
    columns += _measured(code, samples)
    return Listing(
        code, source_files(code, texts), tuple(columns), pins_of(explained, code.rows), pictures,
        (*_facts(explained), *_agreement(code, columns)), tuple(notes), run_verdict(explained),
        not (subject.wrong or subject.hazards),
    )  # fmt: skip


def _measured(code: Code, samples: Sequence[Samples]) -> list[Column]:
    if not samples:
        return []
    chosen = samples_for(samples, code) or samples[0]
    return measured(by_address(chosen, code), chosen.origin)


def _agreement(code: Code, columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """Yield the fact (name, text) on where predicted and sampled time lie, if the listing has both.

    It says which part of the time both have at the same instructions, and which at the same lines.
    """
    found = {column.name: column for column in columns}
    if not {"time", "sampled"} <= set(found):
        return
    lines: dict[object, list[int]] = defaultdict(list)
    for row in code.rows:
        lines[row.places[-1] if row.places else row.address].append(row.address)
    each = ([row.address] for row in code.rows)
    shares = found["time"], found["sampled"]
    same, same_line = agreement(*shares, each), agreement(*shares, lines.values())
    yield (
        "prediction and profile",
        f"see {same:.0f} % of the time at the same instructions, {same_line:.0f} % at the same lines",
    )


def _pictures(explained: Explanation, code: Code) -> tuple[tuple[LanePicture, ...], list[str]]:
    """Return pictures of the first block's accesses and no note, or no pictures and a note with the reason.

    The size is a small one if the same code runs there, else the explained one.
    """
    subject = explained.subject
    assert subject.kernel is not None  # noqa: S101 - narrows the type
    op = find_op(subject.kernel.op)
    try:
        small = ("",) if op.name in SIZES or "trace" in op.usual_sizes else ()
        # The label of a size may end with factors, which the kernel determines.
        for sizes in (*small, subject.size.label.partition(" ")[0]):
            problem = small_problem(subject.kernel, op, subject.config, sizes)
            run = trace_kernel(subject.kernel, subject.arch, subject.config, problem)
            if run.artifact.digest == code.digest:
                found = lane_pictures(run.trace.accesses, run.trace.shared_low)
                return tuple(found.values()), []
    except TimeLimitError:
        raise
    except (GemmlabError, MemoryError) as error:
        return (), [f"No pictures of accesses: {error}"]
    return (), ["No pictures of accesses: other instances of this kernel run at the sizes that are traced."]


def _facts(explained: Explanation) -> tuple[tuple[str, str], ...]:
    subject, occupancy = explained.subject, explained.occupancy.found
    roofline, limits = explained.roofline, " and ".join(explained.occupancy.binding)
    return (
        ("explained for", subject.model.name),
        ("counted", f"at {subject.size.label} on {subject.counters.origin}, not timed"),
        ("occupancy", f"{occupancy.warps} of {occupancy.warps_per_sm} warps, limited by {limits}"),
        ("at most", f"{roofline.bound:,.0f} {subject.unit} by {roofline.bound_by}"),
    )  # fmt: skip
