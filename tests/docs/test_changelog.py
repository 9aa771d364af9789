"""The changelog: a section for each version, the newest first, and this version is the newest."""

from __future__ import annotations

import re

import gemmlab
from support.paths import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PARTS = {"Added", "Changed", "Deprecated", "Removed", "Fixed"}


def test_versions_are_in_order_and_this_one_is_the_newest() -> None:
    found = [tuple(map(int, version.split("."))) for version in re.findall(r"^## (\d+\.\d+\.\d+)", TEXT, re.MULTILINE)]
    assert found == sorted(set(found), reverse=True)
    assert found[0] == tuple(map(int, gemmlab.__version__.split(".")[:3]))


def test_a_version_has_only_known_parts_each_once() -> None:
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert parts
        assert set(parts) <= PARTS
        assert len(parts) == len(set(parts))
