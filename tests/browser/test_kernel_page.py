"""The kernel page in a real browser: lines light each other up, columns, pictures, keys, a phone, the dark, paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmlab.analysis.listing.kernel_listing import explained_listing, static_listing
from gemmlab.cli.sass_subject import Wanted, static_code
from gemmlab.pages.kernel_page import kernel_page
from support.chromium import Browser
from support.cuda_source import compiled, needs_compiler
from support.page_kernels import LOADS, STORE_OF_A, explained, user_file
from support.paper import placed

pytestmark = [pytest.mark.slow, needs_compiler]

READY = "document.documentElement.dataset.ready !== undefined"
ROWS = "document.querySelectorAll('#code tbody td[data-row]').length"
LIT = "[...document.querySelectorAll('#code td.lit')].map((one) => one.textContent.trim())"
SHOWN = "[...document.querySelectorAll('.frame')].filter((one) => one.offsetParent).map((one) => one.dataset.frame)"
STORE = "[...document.querySelectorAll('#code td[data-row]')].find((one) => /STS/.test(one.textContent))"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a user's kernel with a race, a bank conflict and a header."""
    folder = tmp_path_factory.mktemp("own")
    path = folder / "page.html"
    path.write_bytes(kernel_page([explained_listing(explained(str(user_file(folder))))]))
    return path


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two kernels side by side."""
    path = tmp_path_factory.mktemp("two") / "page.html"
    path.write_bytes(kernel_page([explained_listing(explained(name)) for name in ("naive", "block_tile")]))
    return path


@pytest.fixture
def opened(browser: Browser, own: Path) -> Iterator[Browser]:
    yield from _opened(browser, own)


@pytest.fixture
def pair(browser: Browser, two: Path) -> Iterator[Browser]:
    yield from _opened(browser, two)


def _opened(browser: Browser, page: Path) -> Iterator[Browser]:
    browser.prefer("light")
    browser.resize(1400, 900)
    browser.open(page.as_uri())
    browser.run("localStorage.clear()")
    browser.open(page.as_uri())
    browser.until(READY)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def hover(browser: Browser, selector: str) -> None:
    browser.run(f"""document.querySelector({selector!r}).dispatchEvent(
        new PointerEvent("pointerover", {{ bubbles: true, pointerType: "mouse" }}))""")


def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else "")


def test_source_and_code_are_all_there(opened: Browser) -> None:
    assert opened.run(ROWS) > 100
    names = opened.run("[...document.querySelectorAll('#source caption')].map((one) => one.textContent)")
    assert names == ["mine.cu", "helper.cuh"]
    assert opened.run(SHOWN) == ["source", "code"]
    assert opened.run("document.querySelectorAll('#source td.heat[class*=h9]').length") == 1
    heads = opened.run("[...document.querySelectorAll('#code thead th')].map((one) => one.textContent)")
    assert {"executions", "lanes", "wavefronts", "excess", "% of time", "live"} <= set(heads)


def test_a_line_lights_its_instructions_and_a_call_site_only_its_own(opened: Browser) -> None:
    hover(opened, "#s0-1-3 td.text")
    both = opened.run(LIT)
    assert sum("LDG" in text for text in both) == 2
    text = opened.run("document.querySelector('#s0-1-3 details').textContent")
    assert "2 call sites" in text
    assert f"called from mine.cu:{STORE_OF_A}" in text
    hover(opened, "#s0-1-3 .call")
    one = opened.run(LIT)
    assert 0 < len(one) < len(both)
    assert sum("LDG" in text for text in one) == 1
    # The other way: the instruction lights its line, and the caller's line in another tone.
    opened.run(f"{STORE}.id = 'store'")
    load = "[...document.querySelectorAll('#code td[data-row]')].find((one) => /LDG/.test(one.textContent)).id"
    hover(opened, f"#{opened.run(load)}")
    assert opened.run("[...document.querySelectorAll('#source tr.lit')].map((one) => one.id)") == ["s0-1-3"]
    called = opened.run("[...document.querySelectorAll('#source tr.called')].map((one) => one.dataset.line)")
    assert called in (["8"], ["9"])


def test_a_finding_leads_to_its_instruction_and_the_picture(opened: Browser) -> None:
    opened.run("""[...document.querySelectorAll("button.pin")].find(
        (one) => one.textContent.includes("bank conflicts add")).click()""")
    details = opened.run("document.getElementById('details').textContent")
    assert "STS" in details
    assert f"mine.cu:{STORE_OF_A}" in details
    assert "32 wavefronts, 1 at best" in details
    assert opened.run("document.querySelectorAll('#details svg rect.late').length") == 31
    assert opened.run("document.querySelectorAll('#details svg path.thread').length") == 32
    assert opened.run("document.querySelector('#code td.picked').textContent.includes('STS')")
    visible = """(() => {
        const box = document.querySelector("#code td.picked").getBoundingClientRect();
        const pane = document.getElementById("code").getBoundingClientRect();
        return box.top >= pane.top && box.bottom <= pane.bottom;
    })()"""
    assert opened.run(visible)


def test_a_race_is_pinned_to_its_lines(opened: Browser) -> None:
    marked = opened.run("""[...document.querySelectorAll("#source .mark.hazard")].map(
        (one) => Number(one.closest("tr").dataset.line))""")
    assert sorted(set(marked)) == [STORE_OF_A, 9, LOADS]
    assert opened.run("document.querySelectorAll('#findings li.hazard').length") == 2
    assert opened.run("document.querySelectorAll('#code .mark.hazard').length") > 32


def test_a_global_access_shows_its_sectors(opened: Browser) -> None:
    opened.run("""[...document.querySelectorAll("#code td[data-row]")].find(
        (one) => /LDG/.test(one.textContent)).click()""")
    assert "4 sectors" in opened.run("document.querySelector('#details .picture p').textContent")
    assert opened.run("document.querySelectorAll('#details svg rect.alone').length") == 32
    assert opened.run("document.querySelectorAll('#details svg rect.sector').length") == 4


def test_columns_are_chosen_and_sorted(opened: Browser) -> None:
    opened.run("document.querySelector('#columns input[value=banks]').click()")
    heads = "[...document.querySelectorAll('#code thead th')].map((one) => one.textContent)"
    assert "banks" in opened.run(heads)
    opened.run("document.querySelector('#code [data-sort=cycles]').click()")
    place = opened.run(heads).index("cycles") + 1
    cells = f"[...document.querySelectorAll('#code tbody tr')].map((row) => row.cells[{place}].textContent)"
    shown = [float(text.replace(",", "")) for text in opened.run(cells) if text]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 100
    opened.run("document.getElementById('order').click()")
    assert opened.run("document.querySelector('#code tbody th').textContent") == "0x0000"
    opened.run("document.getElementById('ran').click()")
    executed = opened.run(heads).index("executions") + 1
    counts = f"[...document.querySelectorAll('#code tbody tr')].map((row) => row.cells[{executed}].textContent)"
    assert all(text not in ("", "0") for text in opened.run(counts))


def test_ptx_is_shown_on_demand_and_lit(opened: Browser) -> None:
    assert opened.run("document.querySelectorAll('#ptx tr').length") == 0
    opened.run("document.getElementById('show-ptx').click()")
    assert opened.run(SHOWN) == ["source", "ptx", "code"]
    opened.run(f"{STORE}.click()")
    lit = opened.run("[...document.querySelectorAll('#ptx tr.lit')].map((one) => one.textContent)")
    assert len(lit) == 1
    assert "st.shared.f32" in lit[0]


def test_keys_are_enough(opened: Browser) -> None:
    opened.run("document.getElementById('code').focus()")
    for _ in range(3):
        press(opened, "ArrowDown")
    assert opened.run("document.querySelector('#code td.picked').dataset.row") == "2"
    press(opened, "ArrowUp")
    assert opened.run("document.querySelector('#code td.picked').dataset.row") == "1"
    press(opened, "Enter")
    assert opened.run("document.activeElement.id") == "details"
    press(opened, "Escape")
    assert opened.run("document.activeElement.id") == "code"
    press(opened, "ArrowLeft")
    assert opened.run("document.activeElement.id") == "source"
    press(opened, "n")
    assert opened.run("document.activeElement.className") == "pin"
    press(opened, "x")
    assert "ptx" in opened.run(SHOWN)
    press(opened, "/")
    assert opened.run("document.activeElement.id") == "find"
    opened.run("document.getElementById('find').value = 'bar.sync'")
    opened.send("Input.dispatchKeyEvent", type="keyDown", key="Enter")
    assert opened.run("document.getElementById('found').textContent") == "1 instruction"
    assert "BAR.SYNC" in opened.run("document.querySelector('#code td.picked').textContent")


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
