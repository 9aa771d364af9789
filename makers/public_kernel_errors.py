"""Plant errors in each public kernel that `check` finds right, and see whether `check` rejects it.

    python makers/public_kernel_errors.py FOLDER [--new]

The first error drops the kernel's first barrier. If the kernel has none, or passes without it, the next errors take a
step too many along k, leave out the last numbers, or subtract where the kernel adds, one error at a time. The changed
copies lie in a temporary folder. FOLDER is that of `public_kernels.py`, whose list and rows are used. The record has
for each kernel the number of the first error that was rejected, 0 if none was; it is written after each kernel. `--new`
runs only kernels that the record lacks.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gemmlab
from public_kernels import DEVICE, LIST, PAGE, key_of, operation, stored_rows

OUTCOMES = Path(__file__).parent.parent / "benchmarks" / "results" / "public-kernel-errors.json"
BEGIN, END = "<!-- begin planted errors -->", "<!-- end planted errors -->"
_ERRORS = (
    # With one stage, barriers after `kStage > 1` are not compiled.
    (re.compile(r"(kStage > 1\) \{[^}]{0,120}__syncthreads\(\);.*?|)__syncthreads\(\);", re.DOTALL), r"\1"),
    (re.compile(r"(\w+) < ([Kk]);"), r"\1 <= \2;"),
    (re.compile(r"< N\b"), "< N - 16"),
    (re.compile(r" \+ (?!.* \+ )", re.DOTALL), " - "),
    (re.compile(r"(< N\b.*)< N\b", re.DOTALL), r"\1< N - 16"),
)
"""Pattern in a kernel's text -> the text that replaces its first occurrence."""


def main() -> None:
    """Run the command line, and write the sentence into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    parser.add_argument("--new", action="store_true", help="only kernels without an outcome")
    options = parser.parse_args()
    outcomes: dict[str, int] = json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.is_file() else {}
    right = {key for key, row in stored_rows().items() if row.check == "right"}
    for repository in tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]:
        for kernel in repository["kernel"]:
            key = key_of(repository, kernel)
            if key in right and not (options.new and key in outcomes):
                source = options.folder / repository["name"].replace("/", "+") / kernel["file"]
                facts = {**repository["facts"], **kernel["facts"]}
                texts = planted(source.read_text(encoding="utf-8"), facts)
                took = (n for n, text in enumerate(texts, 1) if _rejected(source, text, facts, operation(kernel)))
                outcomes[key] = next(took, 0)
                sys.stderr.write(f"{key}: {outcomes[key] or 'not rejected'}\n")
                OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    found = [outcomes[key] for key in outcomes if key in right]
    later = sum(took > 1 for took in found)
    text = (
        f"{found.count(1)} of {len(found)} kernels that pass `check` are rejected once their first barrier is\n"
        "dropped, or (without barriers) once they take one step too many along k, leave out the last numbers, or\n"
        f"subtract where they add. For {later} this changes nothing, as where a later barrier suffices or a block\n"
        f"is one warp, and a later error of this list is rejected. {found.count(0)} pass with all of them."
    )
    before_it, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before_it}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def planted(text: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of a file with one error after another in the kernel that the facts name."""
    name = str(facts.get("kernel", "")).partition("<")[0]
    start = re.search(rf"\b{name}\(", text).start() if name else text.index("__global__")  # type: ignore[union-attr]
    # A function ends with the first brace at the beginning of a line.
    stop = text.index("\n}", start)
    body = text[start:stop]
    for pattern, error in _ERRORS:
        if pattern.search(body):
            yield text[:start] + pattern.sub(error, body, count=1) + text[stop:]


def _rejected(source: Path, text: str, facts: Mapping[str, Any], op: str | None) -> bool:
    """Return whether `check` finds failures in a copy of the file `source` with the text `text`. The copy includes the
    headers of the original's folders.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / source.name
        copy.write_text(text, encoding="utf-8")
        options = [f"-I{(source.parent / option[2:]).resolve()}" if option.startswith("-I") else option
                   for option in (*facts.get("options", ()), "-I.")]  # fmt: skip
        found = gemmlab.check(copy, op=op, facts={**facts, "options": options}, device=DEVICE, timeout_s=60)
        return any(report.failures for report in found.reports)


if __name__ == "__main__":
    main()
