"""The kernel page in a real browser: lines light each other up, columns, pictures, findings, keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.chromium import Browser
from support.cuda_source import needs_compiler
from support.kernel_pages import READY, SHOWN, STORE
from support.page_kernels import LOADS, STORE_OF_A

pytestmark = [pytest.mark.slow, needs_compiler]

ROWS = "document.querySelectorAll('#code tbody td[data-row]').length"
LIT = "[...document.querySelectorAll('#code td.lit')].map((one) => one.textContent.trim())"


HOTTEST = """[...document.querySelectorAll("#code td.heat.h9")].map(
    (one) => one.parentElement.querySelector("td[data-row]").dataset.row)[0]"""
IN_SIGHT = """(selector, pane) => {
    const own = document.querySelector(selector).getBoundingClientRect();
    if (own.bottom > innerHeight) return false;
    const box = document.getElementById(pane).getBoundingClientRect();
    return own.width > 0 && own.top >= box.top && own.bottom <= box.bottom && own.left >= box.left
        && own.right <= Math.min(box.right, innerWidth);
}"""


@pytest.mark.parametrize(("width", "height"), [(1400, 1000), (390, 844)])
@pytest.mark.sampled(2)
def test_it_opens_at_the_hottest_instruction_with_its_heat(opened: Browser, own: Path, width: int, height: int) -> None:
    opened.resize(width, height, phone=width < 400)
    opened.open(own.as_uri())
    opened.until(READY)
    row = int(opened.run(HOTTEST))
    assert row > 0
    assert opened.run(f"document.getElementById('c0-{row}').classList.contains('lit')")
    opened.run(f"document.getElementById('c0-{row}').closest('tr').id = 'first'")
    assert opened.run("document.querySelector('#first').cells[2].textContent") != ""
    for cell in ("td.heat", "td:nth-child(3)"):
        assert opened.run(f"({IN_SIGHT})('#first {cell}', 'code')"), cell
    assert opened.run("document.getElementById('details').hidden")
    opened.run("document.querySelector('#tabs [data-pane=source]').click()")
    assert opened.run(f"({IN_SIGHT})('#source tr.lit td.heat', 'source')")


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
    hottest = opened.run(
        "[...document.querySelectorAll('#source tr:has(td.heat[class*=h9])')].map((one) => one.textContent)"
    )
    assert len(hottest) <= 2
    # Warps wait for loads at the barrier, or multiply: which of both is hotter is for the model to say.
    assert any("sum += As" in text or "__syncthreads" in text for text in hottest), hottest
    heads = opened.run("[...document.querySelectorAll('#code thead th')].map((one) => one.textContent)")
    assert {"executions", "lanes", "wavefronts", "excess", "% of time", "live"} <= set(heads)


def test_a_line_lights_its_instructions_and_a_call_site_only_its_own(opened: Browser) -> None:
    hover(opened, "#s0-1-3 td.text")
    both = opened.run(LIT)
    assert sum("LDG" in text for text in both) == 2
    text = opened.run("document.querySelector('#s0-1-3 details').textContent")
    assert "2 call sites" in text
    assert f"called from mine.cu:{STORE_OF_A}" in text
    assert "fetch(A, row" in text
    assert "fetch(B, k" in text
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
    first = int(opened.run(HOTTEST))
    for _ in range(3):
        press(opened, "ArrowDown")
    assert opened.run("document.querySelector('#code td.picked').dataset.row") == str(first + 2)
    press(opened, "ArrowUp")
    assert opened.run("document.querySelector('#code td.picked').dataset.row") == str(first + 1)
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
