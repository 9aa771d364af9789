"""Load profiles, select those that the user named, and print them as text or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gemmlab.analysis.findings import Finding
from gemmlab.analysis.stall_findings import stall_findings, waiting
from gemmlab.analysis.stall_reasons import STALLS
from gemmlab.cli.answer import print_json
from gemmlab.cli.console import table_console
from gemmlab.cli.profile_tables import ProfilePage
from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest, printable
from gemmlab.kernels.catalog import SOURCE_SUFFIXES, all_kernels, current_id, ladder
from gemmlab.observe.profile_reader import Profile, Profiles, load_profiles
from gemmlab.ops.catalog import find_op
from gemmlab.pages.tables import size_cell
from gemmlab.results.shipped_records import profiled_gpus, recorded_profile


def loaded(name: str) -> Profiles:
    """Load profiles from a file, or by a GPU's name from the records in the package. Raises `UsageError`."""
    there = recorded_profile(name)
    if there is None and name == Path(name).stem and not Path(name).exists():
        known = ", ".join(profiled_gpus()) or "none"
        raise UsageError(f"--load {name}: no such file, and no GPU whose record comes with gemmlab; those are: {known}")
    return load_profiles(there or name)


def chosen(profiles: Profiles, names: Sequence[str], sizes: str | None, *, baseline: bool) -> Profiles:
    """Select kernels and sizes, and with `baseline` the libraries of equal size and precision. Raises `UsageError`."""
    wanted = [Path(name).stem if name.endswith(SOURCE_SUFFIXES) else current_id(name) for name in names]
    known = dict.fromkeys(one.name for one in profiles.profiles)
    if missing := [name for name in wanted if name not in known]:
        raise UsageError(f"the record has no {missing[0]}; {nearest(missing[0], known, 'it has')}")
    labels = [problem.label for problem in find_op(profiles.op).parse_sizes(sizes)] if sizes is not None else []
    there = dict.fromkeys(one.size for one in profiles.profiles)
    if missing := [label for label in labels if label not in there]:
        raise UsageError(f"the record has nothing at {missing[0]}; it has {printable(', '.join(there))}")
    precisions = {one.precision for one in profiles.profiles if one.name in wanted or not wanted}
    matching = [
        one for one in profiles.profiles
        if (one.size in labels or not labels)
        and (one.name in wanted or (baseline and one.precision in precisions if one.is_library else not wanted))
    ]  # fmt: skip
    return replace(profiles, profiles=tuple(matching))


def show(profiles: Profiles, *, as_json: bool, whole: bool, every_size: bool = True) -> None:
    """Print profiles: all as JSON, or with `whole` each kernel's full page, else one table.

    Full pages are shown at each kernel's largest size, unless `every_size` is set.
    """
    ours = [one for one in profiles.profiles if not one.is_library] or list(profiles.profiles)
    if as_json:
        print_json({
            **{name: getattr(profiles, name) for name in ("op", "device", "arch", "profiler", "time_utc", "notes")},
            "profiles": [_profile_json(profiles, one) for one in profiles.profiles],
        })  # fmt: skip
        return
    page = ProfilePage(table_console())
    page.notes(profiles)
    if not whole:
        page.all(profiles)
        return
    shown = ours if every_size else _largest(ours)
    for one in shown:
        page.one(profiles, one, _findings(profiles, one))
    page.others(dict.fromkeys(one.size for one in ours if one not in shown))


def _largest(found: Sequence[Profile]) -> list[Profile]:
    """Return the profile of each kernel at the largest size at which it ran."""
    largest: dict[str, Profile] = {}
    for one in found:
        before = largest.get(one.name)
        if before is None or _work(one) >= _work(before):
            largest[one.name] = one
    return list(largest.values())


def _work(one: Profile) -> tuple[bool, float]:
    return bool(one.kernels), size_cell(one.size).key or 0.0


def _profile_json(profiles: Profiles, one: Profile) -> dict[str, Any]:
    library = profiles.baseline(one)
    states = [{"stall": state.stall.key, **{name: getattr(state, name) for name in _MEASURED}}
              for state in waiting(one)]  # fmt: skip
    return {
        **asdict(one), "baseline": None if library is None else library.contestant, "stalls": states,
        "findings": [asdict(finding) for finding in _findings(profiles, one)],
    }  # fmt: skip


_MEASURED = ("cycles", "share", "samples", "not_issued", "cost")


def _findings(profiles: Profiles, one: Profile) -> tuple[Finding, ...]:
    kernel = next((kernel for kernel in all_kernels() if kernel.id == one.name), None)
    return stall_findings(one, kernel, ladder(profiles.op, "cuda"))


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
