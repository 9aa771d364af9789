"""Blocks of docs/library.md and docs/larger-than-memory.md: a choice of a kernel, and a plan in pieces, as printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import gemmlab


def choice_block() -> str:
    """Return the first lines of a printed choice, with the call that prints it."""
    asked = 'gemmlab.explain_choice((512, 512), (512, 512), device="H200")'
    lines = str(gemmlab.explain_choice((512, 512), (512, 512), device="H200")).splitlines()
    shown = [_shortened(line, 120) for line in lines[:6]]
    return "\n".join(["```pycon", f">>> print({asked})", *shown, "    ...", "```"])


def pieces_block() -> str:
    """Return the printed plan of a product in pieces, with the call that prints it."""
    shapes = (54784, 54784), (54784, 54784)
    asked = f'gemmlab.explain_choice({shapes[0]}, {shapes[1]}, device="H200", memory_bytes=4 << 30).pieces'
    lines = str(gemmlab.explain_choice(*shapes, device="H200", memory_bytes=4 << 30).pieces).splitlines()
    return "\n".join(["```pycon", f">>> print({asked})", *lines, "```"])


def _shortened(line: str, width: int) -> str:
    """Return a line without the last words that make it longer than `width`, which three dots replace."""
    return line if len(line) <= width else f"{line[: width - 3].rpartition(' ')[0]} ..."


BLOCKS: Mapping[str, Callable[[], str]] = {"choice": choice_block, "choice-in-pieces": pieces_block}
