"""Which kernel provokes which instruction form, computed from the machine code: `python forms.py > forms.md`.

A form is the opcode with its modifiers. Each is listed with the first kernels that have it and with what its meaning
rests on: bits recorded on a GPU, or, for code that the recording GPU does not run, the same kernel's recorded bits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import recorded
from cases import Case, cases, kernel_artifact

from gemmlab.sass.parse import parse

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
PLUMBING = frozenset({"NOP"})
"""Forms that no result depends on."""


def forms_of(case: Case, arch: str) -> frozenset[str]:
    """Names of all instructions of one kernel."""
    functions = parse(kernel_artifact(case, arch).texts["sass"])
    return (
        frozenset(instruction.name for function in functions.values() for instruction in function.instructions)
        - PLUMBING
    )


def coverage(arch: str) -> dict[str, list[Case]]:
    """Form -> the kernels that have it, those with the fewest forms first: they say most about it."""
    found: dict[str, list[tuple[int, str, Case]]] = {}
    for case in cases(arch):
        forms = forms_of(case, arch)
        for form in forms:
            found.setdefault(form, []).append((len(forms), case.kernel, case))
    return {form: [case for *_, case in sorted(having, key=lambda row: row[:2])] for form, having in found.items()}


def rows(covered: dict[str, dict[str, list[Case]]]) -> Iterator[str]:
    """A Markdown table, a form a row."""
    yield "| form | architectures | kernels | rests on |"
    yield "|---|---|---|---|"
    for form in sorted({form for forms in covered.values() for form in forms}):
        archs = [arch for arch in covered if form in covered[arch]]
        having = next(covered[arch][form] for arch in reversed(archs))
        shown = ", ".join(f"`{case.kernel}`" for case in having[:3]) + (
            f" and {len(having) - 3} more" if len(having) > 3 else ""
        )
        yield f"| `{form}` | {', '.join(archs)} | {shown} | {basis(archs, having)} |"


def basis(archs: list[str], having: list[Case]) -> str:
    """What is known of a form beside the emulator's own code."""
    if not any(recorded.bits(case) is not None for case in having):
        return "reference only"
    if recorded.ARCH in archs:
        return f"recorded on {recorded.about()['device']}"
    return f"the same kernel recorded on {recorded.about()['device']}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.writelines(f"{row}\n" for row in rows({arch: coverage(arch) for arch in ARCHITECTURES}))


if __name__ == "__main__":
    main()
