"""Blocks of the diff of each rung's code to that of the rung that it comes after (`Kernel.after`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial

from gemmlab.kernels.catalog import SOURCE_SUFFIX, find_kernel, ladder
from gemmlab.kernels.kernel import Kernel

PAGE = "ladder-diffs.md"
CONTEXT = 3
"""Unchanged lines around a change."""
STEP = 60
"""The most lines added and removed in a diff that is read as one step."""
SECOND_START = 1 / 3
"""A rung with a longer diff is called a second start if it shares less than this part of its lines with the rung
before.
"""
_INCLUDED = re.compile(r'#include "(\w+)\.cu"')
_HEADER = re.compile(r"/\*[ \t]*gemmlab[ \t]*\n.*?\*/\s*", re.DOTALL)
LADDERS: Mapping[str, tuple[str, str]] = {
    f"diffs-{op}-{device}": (op, device) for op, device in (("gemm", "cuda"), ("gemm", "cpu"), ("reduce", "cuda"),
                                                            ("reduce", "cpu"), ("sums", "cuda"))
}  # fmt: skip
"""Name of a block -> the ladder's operation and device."""


def code_of(kernel: Kernel) -> list[str]:
    """Return the lines of a kernel's file without its description: the header comment of a `.cu` file, the docstring
    and `KERNEL` of a Python file.
    """
    text = kernel.path.read_text(encoding="utf-8")
    if kernel.path.suffix == SOURCE_SUFFIX:
        return _HEADER.sub("", text, count=1).strip().splitlines()
    lines, described = text.splitlines(), set[int]()
    for place, part in enumerate(ast.parse(text).body):
        docstring = place == 0 and isinstance(part, ast.Expr)
        descriptor = isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "KERNEL"
        if docstring or descriptor:
            described |= set(range(part.lineno - 1, part.end_lineno or part.lineno))
    return "\n".join(line for index, line in enumerate(lines) if index not in described).strip().splitlines()


def unfolded(kernel: Kernel, *, of: Kernel | None = None) -> list[str]:
    """Return the lines of a rung's code, in which an `#include` of another rung's file is replaced by that code,
    without its `__global__` function, if the rung before is that rung or includes it.

    `of` is the rung whose rung before counts, by default `kernel`.
    """
    known = _before(of or kernel)
    lines = list[str]()
    for line in code_of(kernel):
        at = _INCLUDED.fullmatch(line)
        own = at is None or at[1] not in known
        lines += [line] if at is None or own else _without_kernel(unfolded(find_kernel(at[1]), of=of or kernel))
    return lines


def _before(kernel: Kernel) -> set[str]:
    """Return the ids of the rung before and of all rungs whose files it includes, directly or not."""
    found, left = set[str](), [kernel.after] if kernel.after else []
    while left:
        found.add(left[-1])
        left += [at[1] for at in map(_INCLUDED.fullmatch, code_of(find_kernel(left.pop()))) if at]
    return found


def _without_kernel(lines: list[str]) -> list[str]:
    kernel = next(index for index, line in enumerate(lines) if line.startswith("__global__"))
    begin = max(index for index in range(kernel) if lines[index].startswith("template"))
    end = lines.index("}", kernel)
    return "\n".join(lines[:begin]).rstrip().splitlines() + lines[end + 1 :]


def compared(kernel: Kernel, lines: Sequence[str]) -> list[str]:
    """Return the lines as the diff compares them: in CUDA C++ without indentation, which means nothing there."""
    return [line.strip() for line in lines] if kernel.path.suffix == SOURCE_SUFFIX else list(lines)


def changes(kernel: Kernel) -> list[str]:
    """Return the unified diff of a rung to the one that it comes after, without file names; empty for a first rung.

    The kernel's own name is no change, and in CUDA C++ neither is indentation: an unchanged line is shown as it is now.
    Code that a rung has from the one before by an `#include` of its file is no change either.
    """
    if not kernel.after:
        return []
    before = find_kernel(kernel.after)
    named = re.compile(rf"\b{before.id}\b(?=\s*\(|$)")
    old = [named.sub(kernel.id, line) for line in unfolded(before, of=kernel)]
    new = unfolded(kernel)
    found: list[str] = []
    matcher = SequenceMatcher(None, compared(kernel, old), compared(kernel, new), autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        (_, from_old, _, from_new, _), (_, _, to_old, _, to_new) = group[0], group[-1]
        found.append(f"@@ -{from_old + 1},{to_old - from_old} +{from_new + 1},{to_new - from_new} @@")
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                found += [f" {line}" for line in new[j:j_end]]
            else:
                found += [f"-{line}" for line in old[i:i_end]] + [f"+{line}" for line in new[j:j_end]]
    return found


def size_of(changed: Sequence[str]) -> str:
    """Return the size of a diff in words: `14 lines added, 6 removed`."""
    added, removed = (sum(line.startswith(sign) for line in changed) for sign in "+-")
    return f"{added} {'line' if added == 1 else 'lines'} added, {removed} removed"


def start_of(kernel: Kernel, changed: Sequence[str]) -> str:
    """Return a sentence about a rung that is a second start: nearly all of its code is new. Empty for other rungs."""
    lines = len(unfolded(kernel))
    kept = lines - sum(line.startswith("+") for line in changed)
    if sum(line[0] in "+-" for line in changed) <= STEP or kept >= SECOND_START * lines:
        return ""
    return f" A second start: {kept} of its {lines} lines stand in that rung, so its file is best read whole."


def link(kernel: Kernel) -> str:
    """Return a link to the diff of a rung, with its size; empty for a first rung."""
    said = f"[{size_of(changes(kernel))}]({PAGE}#{kernel.id}), against `{kernel.after}`"
    return said if kernel.after else ""


def ladder_block(op: str, device: str) -> str:
    """Return a section for each rung of a ladder, with its diff."""
    parts = []
    for kernel in ladder(op, device):
        changed = changes(kernel)
        parts.append(f"### {kernel.id}")
        if not kernel.after:
            parts.append(f"{kernel.idea} It is the first rung of a ladder: all {len(code_of(kernel))} lines are new.")
            continue
        body = "\n".join(changed)
        parts.append(
            f"After [`{kernel.after}`](#{kernel.after}): {size_of(changed)}. {kernel.idea}{start_of(kernel, changed)}"
        )
        parts.append(f"```diff\n{body}\n```" if changed else "The code is the same.")
    return "\n\n".join(parts)


BLOCKS: Mapping[str, Callable[[], str]] = {name: partial(ladder_block, *of) for name, of in LADDERS.items()}
