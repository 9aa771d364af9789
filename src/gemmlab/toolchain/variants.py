"""Variants of cached code: the code that was compiled from a source, with its compiler and headers.

For each source, a file (named by the hash of text, options and architecture) lists its *variants*, newest first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache as store
from gemmlab.toolchain.searched import Searched

_MOST = 32
"""The most variants in the list of one source; older ones are compiled again when they are needed."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One artifact of a source."""

    key: str
    made_by: str
    """The compiler, and its headers if they were used."""
    searched: Searched


def variant(source: str, made_by: str, searched: Searched) -> Variant:
    """Return the variant of a source for one compiler and its search, with the key of its artifact."""
    bare = Variant("", made_by, searched)
    return replace(bare, key=_key(source, bare))


def find(source: str, fits: Callable[[Variant], bool]) -> Artifact | None:
    """Return the newest artifact of a source whose variant `fits`; `None` if there is none that can be trusted."""
    found = (store.load(each.key) for each in _listed(source) if fits(each))
    return next((artifact for artifact in found if artifact is not None), None)


def note(source: str, newest: Variant) -> bool:
    """Put a variant first in the list of its source; return whether it could be stored."""
    known = _listed(source)
    if known[:1] == [newest]:
        return True
    newest_first = [newest, *(each for each in known if each.key != newest.key)][:_MOST]
    return store.publish(_name(source), json.dumps([asdict(each) for each in newest_first], sort_keys=True).encode())


def _listed(source: str) -> list[Variant]:
    data = store.read(_name(source))
    try:
        found = [Variant(**each) for each in json.loads(data or b"[]")]
    except (ValueError, TypeError):
        return []
    # The list of another source, copied under this one's name, matches nothing.
    return [each for each in found if isinstance(each.searched, dict) and each.key == _key(source, each)]


def _key(source: str, of: Variant) -> str:
    return store.key_of(source, of.made_by, json.dumps(of.searched, sort_keys=True))


def _name(source: str) -> str:
    return f"{source}.ref"
