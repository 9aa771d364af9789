"""The page of a report in a browser: what it shows, and how it is drawn whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gemmlab.core.records import load_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.pages.kernel_results import results_by_kernel
from gemmlab.pages.page import Page, render
from gemmlab.pages.parts import part_of
from gemmlab.pages.roofs import roof_drawings
from gemmlab.pages.sections import section
from gemmlab.pages.studies import Study
from support.chromium import Browser
from support.paths import CPU, RESULTS
from support.report_records import gpu_bench, hostile_record

SIZES = (256, 384, 512, 768, 1024, 2048)
DRAWN = "[...document.querySelectorAll('figure')].every((one) => one.dataset.drawn || !one.offsetParent)"


def recorded_climbs() -> bytes:
    """Return the report of the records of all ladders, without explanations."""
    names = (f"{CPU}/climb.json", "h200/climb-cuda.json", "h200/reduce.json")
    records = [load_record(RESULTS / name) for name in names]
    sections = [section(name, find_kernel(name), seen, None) for name, seen in results_by_kernel(records).items()]
    assert len(sections) > 30
    return render(Page([part_of(Path(name), r) for name, r in zip(names, records, strict=True)], sections))


def whole_report(explained: Study | None) -> bytes:
    """A climb, a GPU's bench and a hostile record, with `naive` explained."""
    records = [load_record(RESULTS / CPU / "climb.json"), gpu_bench("", *SIZES), hostile_record()]
    outcome = {"naive": explained} if explained is not None else {}
    known = {name: find_kernel(name) for name in ("naive", "block_tile", "vector_load", "packed")}
    sections = [
        section(name, known.get(name), seen, outcome.get(name)) for name, seen in results_by_kernel(records).items()
    ]
    parts = [part_of(Path(f"{place}.json"), record) for place, record in enumerate(records)]
    return render(Page(parts, sections, tuple(roof_drawings(sections))))


def shown_afresh(browser: Browser, report: Path) -> Iterator[Browser]:
    """Yield the browser with the report on a large window in light colours; then require no complaint."""
    browser.prefer("light")
    browser.resize(1200, 4000)
    browser.open_afresh(report.as_uri())
    yield browser
    assert browser.complaints() == []


def drawn(browser: Browser) -> int:
    """Draw every chart, those of folded sections too; how many there are."""
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.resize(browser.run("innerWidth"), 60000)
    browser.until(DRAWN)
    return int(browser.run("document.querySelectorAll('figure svg').length"))
