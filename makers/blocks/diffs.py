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


def compared(kernel: Kernel, lines: Sequence[str]) -> list[str]:
    """Lines as the diff compares them: without indentation, which means nothing in CUDA C++ and much in Python."""
    return [line.strip() for line in lines] if kernel.path.suffix == SOURCE_SUFFIX else list(lines)


def changes(kernel: Kernel) -> list[str]:
    """The unified diff of a rung to the one that it comes after, without file names; empty for one that begins a line.

    The kernel's own name is no change, and in CUDA C++ neither is indentation: a line that stands deeper is shown as it
    is now.
    """
    if not kernel.after:
        return []
    before = find_kernel(kernel.after)
    named = re.compile(rf"\b{before.id}\b(?=\s*\(|$)")
    old = [named.sub(kernel.id, line) for line in code_of(before)]
    new = code_of(kernel)
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
            parts.append(f"{kernel.idea} It begins a line: all {len(code_of(kernel))} lines of its file are its own.")
            continue
        body = "\n".join(changed)
        parts.append(f"After [`{kernel.after}`](#{kernel.after}): {size_of(changed)}. {kernel.idea}")
        parts.append(f"```diff\n{body}\n```" if changed else "The code is the same.")
    return "\n\n".join(parts)


BLOCKS: Mapping[str, Callable[[], str]] = {name: partial(ladder_block, *of) for name, of in LADDERS.items()}
