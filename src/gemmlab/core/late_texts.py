"""Texts of which some are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, overload

from gemmlab.core.errors import NoCompilerError

T = TypeVar("T")


class LateTexts(Mapping[str, str]):
    """Texts by name. Those in `ready` exist; each of `later` is made when it is first read, and then kept.

    A text is missing if a program for it is not installed; `[]` then raises `NoCompilerError`, which says what to
    install. `in`, `len` and iteration make texts, too. Threads that read a text at the same time may each make it. A
    copy and a pickle are dictionaries with all texts.
    """

    def __init__(self, ready: Mapping[str, str], later: Mapping[str, Callable[[], str]]) -> None:
        self.ready = dict(ready)
        self._later = dict(later)
        self._made: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name in self.ready or name not in self._later:
            return self.ready[name]
        if name not in self._made:
            self._made[name] = self._later[name]()
        return self._made[name]

    @overload
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | T, /) -> str | T: ...
    def get(self, name: str, default: str | T | None = None, /) -> str | T | None:
        try:
            return self[name]
        except (KeyError, NoCompilerError):
            return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, dict.fromkeys([*self.ready, *self._later]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        return dict, (dict(self),)


def ready_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that exist, without those that would be made."""
    return dict(texts.ready if isinstance(texts, LateTexts) else texts)
