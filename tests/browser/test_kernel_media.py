"""The kernel page on a phone, in the dark and on paper, and two kernels side by side."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from support.chromium import Browser
from support.cuda_source import needs_compiler
from support.kernel_pages import BACKGROUND, READY, SHOWN, STORE
from support.paper import placed

pytestmark = [pytest.mark.slow, needs_compiler]


def test_a_phone_shows_one_pane_at_a_time(opened: Browser, own: Path) -> None:
    opened.resize(390, 844, phone=True)
    opened.open(own.as_uri())
    opened.until(READY)
    assert opened.run(SHOWN) == ["code"]
    opened.run("document.querySelector('#tabs [data-pane=source]').click()")
    assert opened.run(SHOWN) == ["source"]
    opened.run("document.querySelectorAll('button.pin')[6].click()")
    opened.run("document.getElementById('choose').open = true")
    assert opened.run("document.documentElement.scrollWidth") == 390
    too_wide = """[...document.querySelectorAll("body *")].filter((one) => {
        if (one.closest(".pane, .picture") || one.parentElement.closest("details:not([open])")) return false;
        const box = one.getBoundingClientRect();
        return box.width > 0 && box.right > 390.5;
    }).map((one) => one.outerHTML.slice(0, 200))"""
    assert opened.run(too_wide) == []
    sizes = "[...document.querySelectorAll('#details *, .pane td')].map((one) => getComputedStyle(one).fontSize)"
    assert min(float(size.removesuffix("px")) for size in opened.run(sizes)) >= 9


def test_the_dark_is_whole(opened: Browser) -> None:
    opened.run("document.getElementById('show-ptx').click()")
    opened.run(f"{STORE}.click()")
    opened.run("document.getElementById('theme').click()")
    assert opened.run(BACKGROUND) == "rgb(20, 22, 26)"
    # No text is darker than what is behind it, in the panes, the details and the picture.
    dark = """(() => {
        const level = (text) => {
            const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
            return a === 0 ? null : (0.299 * r + 0.587 * g + 0.114 * b) * (text.startsWith("color(") ? 255 : 1);
        };
        const behind = (one) => {
            for (let node = one; node; node = node.parentElement) {
                const found = level(getComputedStyle(node).backgroundColor);
                if (found !== null) return found;
            }
            return 255;
        };
        return [...document.querySelectorAll("td.text, th, dd, dt, p, button, code, label, summary")].filter(
            (one) => one.offsetParent && level(getComputedStyle(one).color) < behind(one) + 60)
            .map((one) => one.outerHTML.slice(0, 120));
    })()"""
    assert opened.run(dark) == []
    inks = "[...document.querySelectorAll('#details svg text:not(.in)')].map((one) => getComputedStyle(one).fill)"
    assert set(opened.run(inks)) == {"rgb(230, 230, 230)"}


def test_two_kernels_stand_side_by_side(pair: Browser) -> None:
    sides = "[0, 1].map((side) => document.querySelectorAll(`#code td[data-row][data-side='${side}']`).length)"
    first, second = pair.run(sides)
    assert first > 100
    assert second > 150
    same = pair.run("document.querySelectorAll('#code tr.same').length")
    assert same > 40
    opcodes = """[...document.querySelectorAll("#code tr.same")].every((row) => {
        const [a, b] = [...row.querySelectorAll("td[data-row]")].map(
            (one) => one.textContent.replace(/[↻●!▦]/g, "").trim().replace(/^@\\S+ /, "").split(" ")[0]);
        return a === b;
    })"""
    assert pair.run(opcodes)
    pair.run("document.querySelector(\"#code td[data-row][data-side='1']\").click()")
    assert pair.run("document.getElementById('side').value") == "1"
    assert "block_tile.cu" in pair.run("document.querySelector('#source caption').textContent")
    assert pair.run("document.querySelectorAll('#code td.lit, #code td.picked').length") >= 1
    pair.run("document.getElementById('differences').click()")
    assert pair.run("document.querySelectorAll('#code tr.skipped').length") > 0
    assert pair.run("document.querySelectorAll('#code tr.same').length") < same


def test_two_kernels_fit_a_phone_and_paper(pair: Browser, two: Path) -> None:
    pair.resize(390, 844, phone=True)
    pair.open(two.as_uri())
    pair.until(READY)
    assert pair.run("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    try:
        pair.send("Emulation.setEmulatedMedia", media="print", features=[])
        pair.resize(718, 900)
        assert pair.run("document.documentElement.scrollWidth") <= 718
        wide = "[...document.querySelectorAll('#code thead th.text')].map((one) => one.getBoundingClientRect().width)"
        assert min(pair.run(wide)) > 180
        tall = "[...document.querySelectorAll('#code tbody tr')].map((one) => one.getBoundingClientRect().height)"
        assert max(pair.run(tall)) < 60
    finally:
        pair.send("Emulation.setEmulatedMedia", media="", features=[])
    pair.run("addEventListener('beforeprint', () => { window.files = document.getElementById('source').textContent; })")
    pair.send("Page.printToPDF")
    assert all(f"{name}.cu" in pair.run("window.files") for name in ("naive", "block_tile"))
    assert "block_tile.cu" not in pair.run("document.querySelector('#source caption').textContent")


def test_the_page_is_whole_when_it_has_loaded(opened: Browser, own: Path) -> None:
    """A browser that only prints a page does so at once."""
    opened.open(own.as_uri())
    assert opened.run(READY)


def test_paper_has_all_of_it_in_light_colours(opened: Browser) -> None:
    opened.run("document.getElementById('theme').click()")
    opened.run("""addEventListener("beforeprint", () => { window.before = {
        open: [...document.querySelectorAll("#source details")].every((one) => one.open),
        pictures: document.querySelectorAll("#printed svg").length,
    }; })""")
    pdf = base64.b64decode(opened.send("Page.printToPDF", printBackground=True)["data"])
    assert opened.run("window.before") == {"open": True, "pictures": 1}
    assert not opened.run("document.querySelector('#source details').open"), "folded again"
    assert 3 <= len(re.findall(rb"/Type */Page\b", pdf)) <= 12
    assert placed(pdf) > 1000
    try:
        opened.send("Emulation.setEmulatedMedia", media="print", features=[])
        opened.resize(718, 900)
        assert opened.run(BACKGROUND) == "rgb(255, 255, 255)"
        assert opened.run("document.documentElement.scrollWidth") <= 718
        whole = """[...document.querySelectorAll(".pane")].filter((one) => one.offsetParent).map(
            (one) => [one.scrollHeight, one.clientHeight])"""
        assert all(inner <= outer + 1 for inner, outer in opened.run(whole))
        assert opened.run(SHOWN) == ["source", "code"]
    finally:
        opened.send("Emulation.setEmulatedMedia", media="", features=[])
