"""Plant errors in each public kernel that `check` finds right, and see whether `check` rejects it.

    python makers/public_kernel_errors.py FOLDER [--new]

Two errors are planted in each kernel that has a place for them, one at a time: its first barrier is dropped, and the
first stride of rows is wrong. If `check` rejects neither, further errors are planted until it rejects one: the last
stride of rows wrong (the first may be in code that is not compiled), a step too many along k, the last numbers left
out, a difference instead of a sum, a step too few. The changed copies lie in a temporary folder. FOLDER is that of
`public_kernels.py`, whose list and rows are used. The record has for each kernel whether each error was rejected; it is
written after each kernel. `--new` runs only errors that it lacks, and kernels of other facts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gemmlab
from public_kernels import DEVICE, LIST, PAGE, key_of, operation, stored_rows

OUTCOMES = Path(__file__).parent.parent / "benchmarks" / "results" / "public-kernel-errors.json"
BEGIN, END = "<!-- begin planted errors -->", "<!-- end planted errors -->"
_STRIDE = r"\* (ld[abc]|K|N|row|col|emb_size|kHeadDim|head_size)\b(?= \+|;)"
ERRORS = {
    # With one stage, barriers after `kStage > 1` are not compiled.
    "barrier": (re.compile(r"(kStage > 1\) \{[^}]{0,120}__syncthreads\(\);.*?|)__syncthreads\(\);", re.DOTALL), r"\1"),
    "row stride": (re.compile(_STRIDE), r"* (\1 + 16)"),
    "last row stride": (re.compile(f"(.*){_STRIDE}", re.DOTALL), r"\1* (\2 + 16)"),
    "one step too many": (re.compile(r"(\w+) < ([Kk]);"), r"\1 <= \2;"),
    "last numbers left out": (re.compile(r"< N\b"), "< N - 16"),
    "difference": (re.compile(r" \+ (?!.* \+ )", re.DOTALL), " - "),
    "last numbers left out later": (re.compile(r"(< N\b.*)< N\b", re.DOTALL), r"\1< N - 16"),
    "one step too few": (re.compile(r"\bi < (\d+);"), r"i < \1 - 1;"),
}
"""Name of an error -> the pattern in a kernel's text whose first occurrence the text behind it replaces."""
ALWAYS = ("barrier", "row stride")
"""Errors that are planted even if another one was rejected."""
STRIDES = ("row stride", "last row stride")


def main() -> None:
    """Run the command line, and write the sentence into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    parser.add_argument("--new", action="store_true", help="only errors without an outcome")
    options = parser.parse_args()
    rows = {key: row for key, row in stored_rows().items() if row.passes}
    outcomes = {
        key: known for key, known in stored_outcomes().items() if key in rows and known["stated"] == rows[key].stated
    }
    for repository in tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]:
        for kernel in repository["kernel"]:
            key = key_of(repository, kernel)
            if key in rows:
                source = options.folder / repository["name"].replace("/", "+") / kernel["file"]
                facts = {**repository["facts"], **kernel["facts"]}
                known = outcomes.get(key, {}).get("rejected", {}) if options.new else {}
                rejected = _outcomes(source, facts, operation(kernel), known)
                outcomes[key] = {"stated": rows[key].stated, "rejected": rejected}
                sys.stderr.write(f"{key}: {rejected}\n")
                OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    text = sentences([known["rejected"] for known in outcomes.values()])
    before_it, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before_it}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def stored_outcomes() -> dict[str, dict[str, Any]]:
    """Return the record: by kernel, the digest of its facts, and for each error whether `check` rejected it."""
    if not OUTCOMES.is_file():
        return {}
    outcomes: dict[str, dict[str, Any]] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    return outcomes


def sentences(outcomes: Sequence[Mapping[str, bool]]) -> str:
    """Return what the page says about the outcomes of all kernels."""
    counts = {name: (sum(o.get(name, False) for o in outcomes), sum(name in o for o in outcomes)) for name in ERRORS}
    rejected = sum(any(o.values()) for o in outcomes)
    first = ("barrier", *STRIDES)
    others = sum(any(o.values()) and not any(o.get(name, False) for name in first) for o in outcomes)
    strides = sum(any(o.get(name, False) for name in STRIDES) for o in outcomes)
    return (
        f"{rejected} of {len(outcomes)} kernels that pass `check` are rejected with an error planted in them:\n"
        f"{counts['barrier'][0]} of {counts['barrier'][1]} that have a barrier once the first is dropped,\n"
        f"{strides} of {counts['row stride'][1]} that have a stride of rows once the first or last is wrong by 16.\n"
        "(A barrier is not missed where a later one suffices, or a block is one warp.)\n"
        f"{others} are rejected only once they take a step too many or too few, leave out the last numbers, or\n"
        "subtract where they add."
    )


def planted(text: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return by name each error that a file's text has a place for, as the text with it in the kernel that the facts
    name.
    """
    name = str(facts.get("kernel", "")).partition("<")[0]
    start = re.search(rf"\b{name}\(", text).start() if name else text.index("__global__")  # type: ignore[union-attr]
    # A function ends with the first brace at the beginning of a line.
    stop = text.index("\n}", start)
    body = text[start:stop]
    return {
        name: text[:start] + pattern.sub(error, body, count=1) + text[stop:]
        for name, (pattern, error) in ERRORS.items()
        if pattern.search(body)
    }


def _outcomes(source: Path, facts: Mapping[str, Any], op: str | None, known: Mapping[str, bool]) -> dict[str, bool]:
    """Return for each error that was planted whether `check` rejects it; `known` are outcomes of earlier runs."""
    found: dict[str, bool] = {}
    for name, text in planted(source.read_text(encoding="utf-8"), facts).items():
        if name in known:
            found[name] = known[name]
        elif name in ALWAYS or not any(found.values()):
            found[name] = _rejected(source, text, facts, op)
    return found


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
