"""One page for each rung of the catalog: its section of the ladder's page, counters, the diff, the file,
the exercise.
"""

from __future__ import annotations

import re

from blocks.diffs import changes, size_of
from blocks.markdown import markdown_table
from blocks.records import ROOT
from book.before_after import counters_table
from book.exercises import exercise_part
from book.links import Place, slug
from book.page import Page
from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import SOURCE_SUFFIX, all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.rung_draft import page_of, section_of

DIFFS = "docs/ladder-diffs.md"
_DIFF = "the-diff"


def rungs() -> list[Kernel]:
    """Return all rungs of all ladders, in order."""
    return [kernel for kernel in all_kernels() if kernel.step is not None]


def ladder_file(kernel: Kernel) -> str:
    """Return the path of the page of docs/ that has the rung's section, relative to the checkout."""
    return page_of(kernel).relative_to(ROOT).as_posix()


def rung_page(kernel: Kernel) -> Page:
    """Return the page of one rung, also for a rung without a section on its ladder's page."""
    origin = ladder_file(kernel)
    section = section_of(kernel, (ROOT / origin).read_text(encoding="utf-8")) or ""
    path = f"rungs/{kernel.id}.md"
    parts = [
        f"# {kernel.id}",
        f"{kernel.summary[:1].upper()}{kernel.summary[1:]}. {_place(kernel)}",
        f"**Idea.** {kernel.idea}",
        # A subsection of the ladder's page is a section of this page.
        re.sub(r"^###", "##", section.strip(), flags=re.MULTILINE),
        counters_table(kernel),
        f"## The diff\n\n{_diff(kernel)}",
        f"## The whole file\n\n{_file(kernel)}",
        exercise_part(kernel),
    ]
    # Pages link to rungs of other ladders as if these were on the same page.
    there = {Place(file, kernel.id): Place(path) for file in {ladder_file(one) for one in rungs()}}
    there[Place(DIFFS, kernel.id)] = Place(path, _DIFF)
    for heading in re.findall(r"^###+ (.+)$", section, re.MULTILINE):
        there[Place(origin, slug(heading))] = Place(path, slug(heading))
    return Page(path, origin, "\n\n".join(part for part in parts if part) + "\n", there)


def without_rungs(origin: str, text: str) -> str:
    """Return a ladder's page with a table in place of the sections of its rungs."""
    mine = [kernel for kernel in rungs() if ladder_file(kernel) == origin]
    start = min((found.start() for kernel in mine if (found := _section(kernel, text))), default=len(text))
    for kernel in mine:
        if (found := _section(kernel, text)) is not None:
            text = text[: found.start()] + text[found.end() :]
    lines = [[f"[`{one.id}`](#{one.id})", one.summary] for one in mine]
    table = markdown_table(["rung", "what it is"], lines, ["what it is"])
    return f"{text[:start]}## The rungs\n\nEach rung has a page of its own.\n\n{table}\n\n{text[start:]}"


def _section(kernel: Kernel, text: str) -> re.Match[str] | None:
    return re.search(rf"^## {kernel.id}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)


def _place(kernel: Kernel) -> str:
    if not kernel.after:
        return "It is the first rung of a ladder."
    return f"{'A side branch after' if kernel.branch else 'It comes after'} [`{kernel.after}`](#{kernel.after})."


def _diff(kernel: Kernel) -> str:
    if not kernel.after:
        return "It is the first rung of a ladder, so there is nothing to compare it with."
    changed = changes(kernel)
    said = f"To the file of [`{find_kernel(kernel.after).id}`](#{kernel.after}): {size_of(changed)}."
    return f"{said}\n\n{fenced(chr(10).join(changed), 'diff')}" if changed else "The code is the same."


def _file(kernel: Kernel) -> str:
    language = "cuda" if kernel.path.suffix == SOURCE_SUFFIX else "python"
    text = kernel.path.read_text(encoding="utf-8").strip()
    lines = len(text.splitlines())
    shown = kernel.path.relative_to(ROOT).as_posix()
    return f"<details>\n<summary>{shown}, {lines} lines</summary>\n\n{fenced(text, language)}\n\n</details>"


def fenced(text: str, language: str) -> str:
    """Return code as a fenced block. Raises `UsageError` for text that would close the fence."""
    if "```" in text:
        raise UsageError("code with ``` in it cannot be shown")
    return f"```{language}\n{text}\n```"
