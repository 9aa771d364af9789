"""Texts that are made when they are first read."""

from __future__ import annotations

import copy
import pickle

import pytest

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.late_texts import LateTexts, ready_texts


def counted(made: list[str], **ready: str) -> LateTexts:
    """Texts in `ready`, and one named `late` that notes in `made` that it was made."""

    def make() -> str:
        made.append("late")
        return "made"

    return LateTexts(ready, {"late": make})


def failing(error: Exception) -> LateTexts:
    def make() -> str:
        raise error

    return LateTexts({"here": "text"}, {"late": make})


def test_a_text_is_made_once_and_only_if_it_is_read() -> None:
    made: list[str] = []
    texts = counted(made, here="text")
    assert texts["here"] == texts.get("here") == "text"
    assert "here" in texts
    assert ready_texts(texts) == {"here": "text"}
    assert made == []
    assert texts["late"] == texts.get("late") == "made"
    assert made == ["late"]
    assert texts == {"here": "text", "late": "made"}
    assert (len(texts), repr(texts)) == (2, "{'here': 'text', 'late': 'made'}")
    assert made == ["late"]
    assert ready_texts(texts) == {"here": "text"}


def test_a_text_that_exists_is_not_made() -> None:
    made: list[str] = []
    texts = counted(made, late="ready", empty="")
    assert dict(texts) == {"late": "ready", "empty": ""}
    assert made == []


def test_an_unknown_text_is_missing() -> None:
    texts = counted([])
    assert "other" not in texts
    assert (texts.get("other"), texts.get("other", "none")) == (None, "none")
    with pytest.raises(KeyError):
        texts["other"]


def test_a_text_whose_program_is_not_installed_is_missing() -> None:
    texts = failing(NoCompilerError("install it"))
    assert "late" not in texts
    assert dict(texts) == {"here": "text"}
    assert texts.get("late", "none") == "none"
    with pytest.raises(NoCompilerError, match="install it"):
        texts["late"]


def test_another_failure_is_not_hidden() -> None:
    texts = failing(CompileError("damaged"))
    for read in (lambda: texts["late"], lambda: texts.get("late"), lambda: "late" in texts, lambda: dict(texts)):
        with pytest.raises(CompileError, match="damaged"):
            read()


def test_copies_have_all_texts() -> None:
    texts = counted([], here="text")
    pickled = pickle.loads(pickle.dumps(texts))  # noqa: S301 - it was made here
    assert copy.deepcopy(texts) == pickled == {"here": "text", "late": "made"}
