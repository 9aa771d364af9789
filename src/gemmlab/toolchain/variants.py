"""Variants of cached code: the artifacts of one source by different compilers or with different headers.

For each source key (`build_cuda.source_of`: a digest of text, options and architecture) a file in the cache lists the
variants, newest first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache as store
from gemmlab.toolchain.searched import Searched

_MOST = 32
"""Most variants in the list of one source. Older ones are forgotten, and compiled again when they are needed."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One artifact of a source: its key in the cache, its compiler, and the files that were searched for."""

    key: str
    made_by: str
    """The compiler's name, and the version of CUDA's headers if it does not contain them."""
    searched: Searched


def variant(source: str, made_by: str, searched: Searched) -> Variant:
    """Return the variant of a source for a compiler and the places that it searched, with the key of its artifact."""
    bare = Variant("", made_by, searched)
    return replace(bare, key=_key(source, bare))


def find(source: str, fits: Callable[[Variant], bool]) -> Artifact | None:
    """Return the newest artifact of a source in the cache whose variant `fits`; `None` if there is none."""
    found = (store.load(each.key) for each in _listed(source) if fits(each))
    return next((artifact for artifact in found if artifact is not None), None)


def note(source: str, newest: Variant) -> bool:
    """Put a variant first in the list of its source; return whether the list could be stored."""
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
    # A list that was copied from another source's name has other keys, so none of it is used.
    return [each for each in found if isinstance(each.searched, dict) and each.key == _key(source, each)]


def _key(source: str, of: Variant) -> str:
    return store.key_of(source, of.made_by, json.dumps(of.searched, sort_keys=True))


def _name(source: str) -> str:
    return f"{source}.ref"
