"""Blocks of what each rung changes in the code of the rung that it comes after."""

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
"""Lines added and removed up to which a diff is a step that is read at once."""
SECOND_START = 1 / 3
"""A rung with a longer diff is a second start if a smaller part of it than this stands in the rung before."""
_INCLUDED = re.compile(r'#include "(\w+)\.cu"')
_HEADER = re.compile(r"/\*[ \t]*gemmlab[ \t]*\n.*?\*/\s*", re.DOTALL)
LADDERS: Mapping[str, tuple[str, str]] = {
    f"diffs-{op}-{device}": (op, device) for op, device in (("gemm", "cuda"), ("gemm", "cpu"), ("reduce", "cuda"),
                                                            ("reduce", "cpu"), ("sums", "cuda"))
}  # fmt: skip
"""Operation and device by block."""


def code_of(kernel: Kernel) -> list[str]:
    """The lines of a kernel's file without what describes it: header comment, or docstring and descriptor."""
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
    """The code of a rung, with that of rungs whose files it includes, as far as it has it from the rung before.

    `of` is the rung that is compared with the one before. The `__global__` function of an included rung is left out.
    """
    known = _before(of or kernel)
    lines = list[str]()
    for line in code_of(kernel):
        at = _INCLUDED.fullmatch(line)
        own = at is None or at[1] not in known
        lines += [line] if at is None or own else _without_kernel(unfolded(find_kernel(at[1]), of=of or kernel))
    return lines


def _before(kernel: Kernel) -> set[str]:
    """The names of the rung before and of those whose files it includes."""
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
    """Lines as the diff compares them: without indentation, which means nothing in CUDA C++ and much in Python."""
    return [line.strip() for line in lines] if kernel.path.suffix == SOURCE_SUFFIX else list(lines)


def changes(kernel: Kernel) -> list[str]:
    """The unified diff of a rung to the one that it comes after, without file names; empty for one that begins a line.

    The kernel's own name is no change, and in CUDA C++ neither is indentation: a line that stands deeper is shown as it
    is now. What a rung has from the one before by `#include` of its file is no change either.
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
    """`14 lines added, 6 removed`."""
    added, removed = (sum(line.startswith(sign) for line in changed) for sign in "+-")
    return f"{added} {'line' if added == 1 else 'lines'} added, {removed} removed"


def start_of(kernel: Kernel, changed: Sequence[str]) -> str:
    """A sentence about a rung whose diff explains little, since nearly all of it is new; empty for others."""
    lines = len(unfolded(kernel))
    kept = lines - sum(line.startswith("+") for line in changed)
    if sum(line[0] in "+-" for line in changed) <= STEP or kept >= SECOND_START * lines:
        return ""
    return f" A second start: {kept} of its {lines} lines stand in that rung, so its file is best read whole."


def link(kernel: Kernel) -> str:
    """Where the diff of a rung stands, and how large it is; empty for a rung that begins a line."""
    said = f"[{size_of(changes(kernel))}]({PAGE}#{kernel.id}), against `{kernel.after}`"
    return said if kernel.after else ""


def ladder_block(op: str, device: str) -> str:
    """Every rung of a ladder with its diff."""
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
