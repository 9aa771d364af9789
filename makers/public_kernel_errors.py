"""`python makers/public_kernel_errors.py FOLDER`: plant an error in each public kernel that is right, for `check`.

The kernel's first barrier is dropped. If it has none, or if nothing changes without it, the kernel takes a step too
many along k, leaves out the last numbers, or subtracts where it adds. The copies lie in a temporary folder. FOLDER is
that of `public_kernels.py`, whose list and rows are used. Outcomes are stored one by one: how many errors it took.
`--new` plants only where there is none.
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
    # Behind `kStage > 1` are barriers that are not compiled for one stage.
    (re.compile(r"(kStage > 1\) \{[^}]{0,120}__syncthreads\(\);.*?|)__syncthreads\(\);", re.DOTALL), r"\1"),
    (re.compile(r"(\w+) < ([Kk]);"), r"\1 <= \2;"),
    (re.compile(r"< N\b"), "< N - 16"),
    (re.compile(r" \+ (?!.* \+ )", re.DOTALL), " - "),
)
"""Text in a kernel -> what takes its place where it occurs first."""


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
        f"{found.count(1)} of {len(found)} kernels that pass `check` are rejected once their first barrier\n"
        "is dropped, or (without barriers) once they take one step too many along k, leave out the last numbers,\n"
        f"or subtract where they add. For {later} this changes nothing, as where a later barrier suffices, and the\n"
        f"next such error is rejected. {found.count(0)} pass with all of them: bounds of sums in halves are wide."
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
    """Check a copy of a file, whose own folders of headers stay where they are; return whether it failed."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / source.name
        copy.write_text(text, encoding="utf-8")
        options = [f"-I{(source.parent / option[2:]).resolve()}" if option.startswith("-I") else option
                   for option in (*facts.get("options", ()), "-I.")]  # fmt: skip
        found = gemmlab.check(copy, op=op, facts={**facts, "options": options}, device=DEVICE, timeout_s=60)
        return any(report.failures for report in found.reports)


if __name__ == "__main__":
    main()
