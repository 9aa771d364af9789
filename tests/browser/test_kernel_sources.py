"""Kernel pages of hostile sources, and of code that was not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.analysis.listing.kernel_listing import explained_listing, static_listing
from gemmlab.cli.sass_subject import Wanted, static_code
from gemmlab.pages.kernel_page import kernel_page
from support.chromium import Browser
from support.cuda_source import compiled, needs_compiler
from support.kernel_pages import READY
from support.page_kernels import explained, user_file

pytestmark = [pytest.mark.slow, needs_compiler]


def test_hostile_names_and_sources_stay_text(browser: Browser, tmp_path: Path) -> None:
    text = user_file(tmp_path).read_text()
    hostile = tmp_path / "mine.cu"
    hostile.write_text(
        text.replace("// ", "").replace(
            "float sum = 0.0f;", 'float sum = 0.0f;  // </script><img src=x onerror="window.hostile=1">'
        )
    )
    page = tmp_path / "page.html"
    page.write_bytes(kernel_page([explained_listing(explained(str(hostile)))]))
    browser.open(page.as_uri())
    browser.until(READY)
    assert "onerror" in browser.run("document.getElementById('source').textContent")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("window.hostile === undefined")
    assert browser.complaints() == []


def test_code_that_was_not_run_has_a_page_too(browser: Browser, tmp_path: Path) -> None:
    page, cubin = tmp_path / "page.html", tmp_path / "two.cubin"
    cubin.write_bytes(compiled("__global__ void only(float* x) { x[threadIdx.x] += 1.0f; }", "only").code)
    sides = [static_listing(static_code(Wanted(str(cubin))))] * 2
    page.write_bytes(kernel_page([sides[0]]))
    browser.resize(1400, 900)
    browser.open(page.as_uri())
    browser.until(READY)
    assert "(source not at hand)" in browser.run("document.querySelector('#source caption').textContent")
    assert browser.run("document.getElementById('heat').value") == ""
    assert not browser.run("document.getElementById('ran').offsetParent !== null")
    browser.run("document.querySelector('#source tr.used td.text').click()")
    assert browser.run("document.querySelectorAll('#code td.lit').length") > 3
    page.write_bytes(kernel_page(sides))
    browser.open(page.as_uri())
    browser.until(READY)
    assert browser.run("document.querySelectorAll('#code tr.same').length") == len(sides[0].code.rows)
    assert browser.complaints() == []
