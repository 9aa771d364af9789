"""A new rung of a ladder in a checkout: its file, a copy of the rung it comes after, and its section in the docs.

The copy works from the start, so a check passes before the first change, and the diff to the rung that it comes after
shows only later changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.files import replace_file
from gemmlab.core.precision import FLOAT32
from gemmlab.kernels.catalog import SOURCE_SUFFIX, all_kernels, current_ids, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.order import file_of, in_order
from gemmlab.kernels.stated_facts import restated

OPEN = "To be written"
"""The opening of every text that is still to be written."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COUNTED = ("gemm", "cuda")
"""Operation and device whose page has a generated block in each rung's section."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The files and texts that are written for a new rung."""

    kernel: Path
    page: Path
    texts: Mapping[Path, str]
    """Whole texts by file: the new rung, its page, and the rung that will come after the new one, if there is one."""
    follower: str = ""
    """Id of the rung that will come after the new one; empty if the new one is a branch or the last of its line."""

    def write(self) -> None:
        """Write every file. `UsageError` if one cannot be written; those written before it stay."""
        for path, text in self.texts.items():
            try:
                replace_file(path, text.encode())
            except OSError as error:
                raise UsageError(f"{path}: {error.strerror or error}") from error


def draft_rung(name: str, after: str, *, branch: bool = False) -> Draft:
    """Return the draft of a rung `name` that comes after the rung `after`; nothing is written yet.

    The new rung is inserted between `after` and the rung that follows it; with `branch`, it is a side branch. Raises
    `UsageError` for a name that exists or is impossible, for an unknown rung, outside a checkout, and if the page has
    no section of an earlier rung.
    """
    before = find_kernel(after)
    if before.step is None:
        raise UsageError(f"--after {after}: {file_of(before)} is no rung")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--rung {name}: a kernel is named in small letters, digits and _, as double_buffer")
    taken = {kernel.id: kernel for kernel in all_kernels()}
    if name in taken or name in current_ids():
        raise UsageError(f"--rung {name}: it exists already, {file_of(taken[current_ids().get(name, name)])}")
    path = before.path.with_name(name + before.path.suffix)
    rung = replace(before, id=name, path=path, after=before.id, branch=branch, aliases=())
    follower = None if branch else _follower(before)
    texts = {path: _copied(before, rung)}
    if follower is not None:
        texts[follower.path] = restated(follower.path, {"after": name})
    rungs = [replace(one, after=name) if follower and one.id == follower.id else one for one in all_kernels()]
    page = page_of(rung)
    return Draft(path, page, {page: _with_section(page, rung, in_order([*rungs, rung])), **texts},
                 follower.id if follower else "")  # fmt: skip


_SUMS = ("reduce", "sums")
"""Operations whose rungs share a page."""


def page_of(kernel: Kernel) -> Path:
    """Return the page of docs/ that has a section for each rung of the kernel's ladder. `UsageError` outside a
    checkout.
    """
    docs = kernel.path.parents[4] / "docs"
    name = "reduce" if kernel.op in _SUMS else _gemm_page(kernel)
    page = docs / f"ladder-{name}.md"
    if not page.is_file():
        raise UsageError(
            f"--rung: {page} does not exist; rungs are added to a checkout, kernels of your own by a FILE.cu"
        )
    return page


def section_of(kernel: Kernel, page: str) -> str | None:
    """Return the text of a rung's section in the text of its page, without the heading; `None` if there is none."""
    found = re.search(rf"^## {kernel.id}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return None if found is None else found[1]


def section_text(kernel: Kernel) -> str:
    """Return the section that is written for a new rung, with its heading."""
    parts = [
        f"## {kernel.id}",
        f"{OPEN}: its change to [`{kernel.after}`](#{kernel.after}), and the gain.",
    ]
    if (kernel.op, kernel.device) == _COUNTED:
        parts += [f"```text\n{OPEN}: a picture of the data that threads read.\n```",
                  f"<!-- begin rung-{kernel.id} -->\n<!-- end rung-{kernel.id} -->"]  # fmt: skip
    return "\n\n".join(parts) + "\n\n"


def _gemm_page(kernel: Kernel) -> str:
    if kernel.device == "cpu":
        return "cpu"
    return "gpu" if kernel.precision == FLOAT32 else "tensor"


def _follower(before: Kernel) -> Kernel | None:
    ladder = (kernel for kernel in all_kernels() if (kernel.op, kernel.device) == (before.op, before.device))
    return next((kernel for kernel in ladder if kernel.after == before.id and not kernel.branch), None)


def _copied(before: Kernel, rung: Kernel) -> str:
    """Return the text of the new rung's file: that of `before`, with the new name and place, and `OPEN` in place of
    every description. Its aliases and expectations are left out.
    """
    placeholders = dict.fromkeys(("summary", "idea", "source"), f"{OPEN}.")
    text = restated(before.path, {**placeholders, "after": before.id, "branch": True if rung.branch else None,
                                  "aliases": None, "expect": None})  # fmt: skip
    if before.path.suffix == SOURCE_SUFFIX:
        return re.sub(rf"\b{before.id}\b(?=\s*\()", rung.id, text)
    return re.sub(r'\A""".*?"""', f'"""{OPEN}."""', text, count=1, flags=re.DOTALL)


def _with_section(page: Path, rung: Kernel, order: list[Kernel]) -> str:
    """Return the page's text with a section for `rung`, after that of the nearest earlier rung in `order` that has one.

    Raises `UsageError` if no earlier rung has one.
    """
    text = page.read_text(encoding="utf-8")
    there = [kernel.id for kernel in order if kernel.id == rung.id or section_of(kernel, text) is not None]
    place = there.index(rung.id)
    if place == 0:
        raise UsageError(f"{page}: no section of a rung before {rung.id}, after which to insert its own")
    start = text.index(f"\n## {there[place - 1]}\n") + 1
    following = text.find("\n## ", start)
    end = len(text) if following < 0 else following + 1
    return text[:end].rstrip("\n") + "\n\n" + (section_text(rung) + text[end:]).rstrip("\n") + "\n"
