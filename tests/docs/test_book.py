"""The documentation site: where links lead, which words are explained, a page a rung, a build without warnings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from blocks.records import ROOT
from book import glossary, paths, site
from book.links import BookError, Links, Place
from book.page import Page
from book.rungs import rung_page, rungs, without_rungs
from build_book import build, build_html
from gemmlab.kernels.catalog import find_kernel

GLOSSARY = (ROOT / "docs" / glossary.PAGE).read_text(encoding="utf-8")


def links() -> Links:
    places = {Place("docs/a.md"): Place("a.md"), Place("docs/a.md", "naive"): Place("rungs/naive.md")}
    return Links(ROOT, {**places, Place("README.md"): Place("overview.md")})


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("[x](a.md#other)", "b.md", "[x](a.md#other)"),
        ("[`naive`](#naive)", "a.md", "[`naive`](rungs/naive.md)"),
        ("[`naive`](a.md#naive)", "rungs/other.md", "[`naive`](naive.md)"),
        ("[x](#here)", "a.md", "[x](#here)"),
        ("[x](../README.md)", "rungs/other.md", "[x](../overview.md)"),
        ("[x](https://example.org/a.md)", "a.md", "[x](https://example.org/a.md)"),
        ("![x](../LICENSE)", "rungs/other.md", "![x](../files/LICENSE)"),
        ("see [the `makers`](../makers).", "a.md", "see the `makers`."),
        ("`f[](int)` and\n```cuda\n[](float* a)\n```", "a.md", "`f[](int)` and\n```cuda\n[](float* a)\n```"),
    ],
)
def test_links_lead_to_where_things_stand_in_the_site(text: str, page: str, expected: str) -> None:
    assert links().rewritten(text, "docs/a.md", page) == expected


def test_a_link_to_nothing_is_named() -> None:
    found = links()
    found.rewritten("[x](missing.md) and [y](../README.md)", "docs/a.md", "a.md")
    assert found.wrong == ["docs/a.md: links to missing.md, which is no file"]


def test_the_site_is_not_written_with_a_link_to_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = Page("library.md", "docs/library.md", "# Title\n\n[gone](gone.md)\n")
    monkeypatch.setattr(site, "_documents", lambda: [page])
    monkeypatch.setattr(site, "rungs", list)
    with pytest.raises(BookError, match=r"docs/library\.md: links to gone\.md"):
        site.write_site(tmp_path / "pages")


def test_the_first_use_of_a_term_is_linked_and_no_other() -> None:
    text = (
        "# A warp\n\n| warp | tile |\n\nSee `warp`, [a warp](x.md) and\n```text\nwarp\n```\n"
        "Warps of a tile. A warp again, warp-wide, wrapped.\n"
    )
    found = glossary.linked(text, glossary.terms_of(GLOSSARY), "../glossary.md")
    assert re.sub(r' "[^"]*"', "", found) == text.replace("Warps of a tile", "[Warps](../glossary.md#warp) of a "
                                                          "[tile](../glossary.md#tile)")  # fmt: skip
    assert '[Warps](../glossary.md#warp "32 threads that execute one instruction together.")' in found


def test_a_heading_that_means_other_things_too_is_left_out() -> None:
    (term,) = glossary.terms_of("### Peak\n<!-- also: =FMA peak -->\n\nThe most of `a`. More.\n\n## Next\n")
    assert (term.words, term.meaning) == (("FMA peak",), "The most of a.")
    assert (
        glossary.linked("The peak, the FMA peak.", [term], "g.md")
        == 'The peak, the [FMA peak](g.md#peak "The most of a.").'
    )


def test_the_glossary_explains_each_word_once() -> None:
    terms = glossary.terms_of(GLOSSARY)
    words = [word for term in terms for word in term.words]
    assert len(terms) == GLOSSARY.count("\n### ") >= 60
    assert len(words) == len(set(words))
    assert all(term.meaning for term in terms)


@pytest.mark.parametrize("name", ["naive", "wmma_tf32", "reduce_shuffle", "sum_rows", "packed", "reduce_vector"])
def test_the_page_of_a_rung_has_its_idea_its_diff_and_its_file(name: str) -> None:
    kernel, text = find_kernel(name), rung_page(find_kernel(name)).text
    assert text.startswith(f"# {name}\n")
    for part in (kernel.idea, "## The diff", "## The whole file", str(kernel.after)):
        assert part in text


@pytest.mark.parametrize("name", ["naive", "reduce_shuffle", "packed"])
def test_the_page_of_a_rung_has_counters_before_and_after(name: str) -> None:
    kernel = find_kernel(name)
    assert re.search(rf"^\| .* \| `{kernel.after}` \| `{name}` \|$", rung_page(kernel).text, re.MULTILINE)


def test_a_new_rung_has_a_page_before_anything_is_written_about_it() -> None:
    page = rung_page(replace(find_kernel("double_buffer"), id="new_rung"))
    assert page.path == "rungs/new_rung.md"
    assert page.places[Place("docs/ladder-gpu.md", "new_rung")] == Place("rungs/new_rung.md")


def test_the_sections_of_rungs_leave_the_page_of_their_ladder() -> None:
    text = without_rungs("docs/ladder-gpu.md", (ROOT / "docs" / "ladder-gpu.md").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert "The rungs" in headings
    assert "Counters of all rungs" in headings
    assert not {kernel.id for kernel in rungs()} & set(headings)
    assert "| [`naive`](#naive) |" in text


def test_a_page_that_no_path_names_is_in_the_last_part() -> None:
    found = paths.ways(["emulator", "brand-new", "ladder-gpu"])
    assert [(way.title, way.pages) for way in found if way.pages] == [
        ("Climb", ("ladder-gpu",)), ("Understand", ("emulator",)), ("More", ("brand-new",)),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_is_built_without_a_warning_and_needs_nothing_from_outside(tmp_path: Path) -> None:
    assert build(tmp_path) == 0
    pages = [*(tmp_path / "html").rglob("*.html")]
    assert {f"{kernel.id}.html" for kernel in rungs()} <= {page.name for page in pages}
    loaded = re.compile(r'<(?:script|img|link|iframe)\b[^>]*?(?:src|href)="(?:https?:)?//[^"]*"')
    for page in pages:
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page.name
    assert not [sheet for sheet in (tmp_path / "html").rglob("*.css") if "@import" in sheet.read_text("utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[x](other.md#nowhere)", "[x](#nowhere)", "```{toctree}\ngone\n```"])
def test_a_link_that_leads_nowhere_fails_the_build(text: str, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text(f"# First\n\n```{{toctree}}\nother\n```\n\n{text}\n", encoding="utf-8")
    (pages / "other.md").write_text("# Other\n\n## Here\n", encoding="utf-8")
    assert build_html(tmp_path) != 0
    (pages / "index.md").write_text("# First\n\n```{toctree}\nother\n```\n\n[x](other.md#here)\n", encoding="utf-8")
    assert build_html(tmp_path) == 0
