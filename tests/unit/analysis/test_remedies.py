"""The predicted gain of advice: as large as the rung that follows it shows, none where there is nothing to gain."""

from __future__ import annotations

from functools import cache

import pytest

from gemmlab.analysis.findings import Finding
from gemmlab.analysis.model.quoted_prediction import modelled, quote
from gemmlab.analysis.subject import machine
from gemmlab.instruments.explain_result import ExplainResult
from gemmlab.instruments.explaining import explain
from gemmlab.kernels.catalog import find_kernel
from support.cuda_source import needs_compiler

pytestmark = needs_compiler


@cache
def explained(name: str) -> ExplainResult:
    return explain(name, gpu="H200")


def finding(name: str, key: str) -> Finding:
    return next(one for one in explained(name).findings if one.key == key)


@pytest.mark.in_turns(20)
def test_coalesced_loads_gain_what_the_next_rung_gains() -> None:
    arch, model = machine("", "H200")
    kernel = find_kernel("naive")
    naive = quote(modelled(kernel, arch, model, kernel.configure()), kernel, kernel.configure())
    (strided,) = explained("naive_strided").predictions[0]
    gain = finding("naive_strided", "uncoalesced loads").gain_pct
    assert gain is not None
    assert not isinstance(strided, str)
    # The next rung stores side by side, too.
    assert 0.6 < (1 + gain / 100) / (naive.speed / strided.speed) < 1.5


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("kernel", "key", "least", "most"),
    [
        ("thread_tile_2d", "register banks", 1, 30),
        ("thread_tile_2d", "load conflicts", 0, 100),
        ("async_copy", "large loop", 0, 30),
    ],
)
def test_gains_are_of_the_size_of_the_fault(kernel: str, key: str, least: float, most: float) -> None:
    gain = finding(kernel, key).gain_pct
    assert gain is not None
    assert least <= gain <= most


@pytest.mark.in_turns(20)
def test_what_asks_for_other_code_is_not_predicted() -> None:
    found = finding("thread_tile_2d", "two barriers")
    assert (found.gain_pct, found.gain) == (None, "Gain not predicted.")


@pytest.mark.in_turns(20)
def test_every_finding_says_its_gain_or_that_there_is_none() -> None:
    text = str(explained("thread_tile_2d"))
    numbered = [line for line in text.splitlines() if line[:1].isdigit()]
    assert numbered
    assert all("redicted gain: " in line or "Gain not predicted." in line for line in numbered)


@pytest.mark.in_turns(20)
def test_a_finding_names_the_line_that_calls_a_header() -> None:
    text = finding("thread_tile_2d", "uncoalesced stores").text
    lines = find_kernel("thread_tile_2d").path.read_text(encoding="utf-8").splitlines()
    place, _, rest = text.partition(" called from thread_tile_2d.cu:")
    assert place.startswith("four.cuh:")
    assert "C" in lines[int(rest.partition(":")[0]) - 1]
