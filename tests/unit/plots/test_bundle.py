"""The script of the charts: put together once, and fit to stand in a page."""

from __future__ import annotations

from pathlib import Path

import pytest
import vl_convert

from gemmlab.plots.bundle import vega_bundle


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("spoilt", [False, True])
def test_the_script_is_made_once_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    made = []

    def bundle(snippet: str) -> str:
        made.append(snippet)
        return "a = '</script>'\r\n"

    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    first = vega_bundle.__wrapped__()
    (kept,) = (tmp_path / "cache" / "charts").iterdir()
    if spoilt:
        kept.write_bytes(b"no script")
    assert first == vega_bundle.__wrapped__()
    assert first.endswith("*/\na = '<\\/script>'\n")
    assert len(made) == 1 + spoilt
