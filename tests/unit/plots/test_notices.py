"""Notices of third parties: of everything that is inlined, in every bundle and in the wheel's file."""

from __future__ import annotations

import pytest

from gemmlab.plots.bundle import vega_bundle
from gemmlab.plots.script_notices import COMPONENTS, LICENCES, Component, markdown
from support.paths import ROOT


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda one: one.name)
def test_every_part_is_in_the_bundle_and_named_at_its_beginning(component: Component) -> None:
    notice, _, scripts = vega_bundle().partition("*/\n")
    assert notice.startswith("/*!")
    for text in (component.name, component.copyright, LICENCES[component.licence]):
        assert text in notice
    assert component.trace in scripts


def test_the_file_of_the_wheel_is_the_table() -> None:
    assert (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8") == markdown()
