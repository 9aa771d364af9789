"""Print the answer of `gemmlab profile`: profiles, or the meaning of stall reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gemmlab.analysis.stall_reasons import STALLS
from gemmlab.cli.answer import Form, print_document, print_json
from gemmlab.cli.console import table_console
from gemmlab.cli.profile_tables import ProfilePage
from gemmlab.instruments.profile_result import ProfileResult
from gemmlab.observe.profile import Profile
from gemmlab.pages.tables import size_cell


def show(result: ProfileResult, form: Form, *, whole: bool, every_size: bool = True) -> None:
    """Print profiles as JSON, as CSV or as text: with `whole` a page for each kernel and size, else a table per size.

    Without `every_size`, a kernel has one page, for its largest size. A library has pages only if there is no kernel.
    """
    if print_document(result, form):
        return
    profiles = result.profiles
    ours = [one for one in profiles.profiles if not one.is_library] or list(profiles.profiles)
    page = ProfilePage(table_console())
    page.notes(profiles)
    if not whole:
        page.all(profiles)
        return
    shown = ours if every_size else _largest(ours)
    for one in shown:
        page.one(profiles, one, result.findings(one))
    page.others(dict.fromkeys(one.size for one in ours if one not in shown))


def _largest(found: Sequence[Profile]) -> list[Profile]:
    """Return the profile of each kernel at the largest size at which it ran; if it ran at none, at the largest."""
    largest: dict[str, Profile] = {}
    for one in found:
        before = largest.get(one.name)
        if before is None or _work(one) >= _work(before):
            largest[one.name] = one
    return list(largest.values())


def _work(one: Profile) -> tuple[bool, float]:
    return bool(one.kernels), size_cell(one.size).key or 0.0


def explain_stalls(*, as_json: bool) -> None:
    """Print the meaning of every stall reason."""
    if as_json:
        print_json({"stalls": [
            {**asdict(stall), "name": stall.name, "metric": stall.metric, "not_issued": stall.not_issued,
             "cycles": stall.cycles}
            for stall in STALLS
        ]})  # fmt: skip
    else:
        ProfilePage(table_console()).stalls()
