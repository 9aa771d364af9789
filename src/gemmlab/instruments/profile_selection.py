"""Load profiles, and select those of some kernels and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import comparable_precision
from gemmlab.core.words import nearest, printable
from gemmlab.kernels.catalog import SOURCE_SUFFIXES, current_id
from gemmlab.observe.profile import NO_BASELINE
from gemmlab.observe.profile_reader import Profiles, load_profiles
from gemmlab.ops.catalog import find_op
from gemmlab.results.shipped_records import profiled_gpus, recorded_profile


def loaded(name: str) -> Profiles:
    """Load profiles or counts from the package's record of the GPU `name`; if it has none, from the file `name`.

    Raises `UsageError` for a bare name that is neither, `RecordError` for a file that cannot be read or has none.
    """
    there = recorded_profile(name)
    if there is None and name == Path(name).stem and not Path(name).exists():
        known = ", ".join(profiled_gpus()) or "none"
        raise UsageError(f"--load {name}: no such file, and no GPU whose record comes with gemmlab; those are: {known}")
    return load_profiles(there or name)


def chosen(profiles: Profiles, names: Sequence[str], sizes: str | None, *, baseline: bool) -> Profiles:
    """Return the profiles of the kernels `names` at `sizes`; no names or no sizes stand for all.

    With `baseline`, those of libraries of the same sizes and precisions are among them. Notes on missing libraries
    stay only if one is missing. Raises `UsageError` for a kernel or size that the profiles lack.
    """
    wanted = [Path(name).stem if name.endswith(SOURCE_SUFFIXES) else current_id(name) for name in names]
    known = dict.fromkeys(one.name for one in profiles.profiles)
    if missing := [name for name in wanted if name not in known]:
        raise UsageError(f"the record has no {missing[0]}; {nearest(missing[0], known, 'it has')}")
    labels = [problem.label for problem in find_op(profiles.op).parse_sizes(sizes)] if sizes is not None else []
    there = dict.fromkeys(one.size for one in profiles.profiles)
    if missing := [label for label in labels if label not in there]:
        raise UsageError(f"the record has nothing at {missing[0]}; it has {printable(', '.join(there))}")
    shown = [one for one in profiles.profiles if not one.is_library and (one.name in wanted or not wanted)]
    precisions = {comparable_precision(one.precision) for one in shown}
    matching = [
        one for one in profiles.profiles
        if (one.size in labels or not labels)
        and (one.name in wanted or (baseline and one.precision in precisions if one.is_library else not wanted))
    ]  # fmt: skip
    notes = profiles.notes
    if not baseline or all(profiles.baseline(one) for one in shown):
        notes = tuple(note for note in notes if not note.startswith(NO_BASELINE))
    return replace(profiles, profiles=tuple(matching), notes=notes)
