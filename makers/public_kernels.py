"""`python makers/public_kernels.py FOLDER`: run public kernels through check, explain and bench, and write the table.

FOLDER has a checkout of each repository of `public_kernels.toml`, named OWNER+NAME, at the commit named there. Nothing
is written there, and no code of theirs enters the project: the table has names and verdicts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIST, PAGE = HERE / "public_kernels.toml", HERE.parent / "docs" / "public-kernels.md"
BEGIN, END = "<!-- begin public kernels -->", "<!-- end public kernels -->"
MOST_LINES = 10
"""Lines of facts with which a kernel counts as one that goes through without an edit."""
VERBS: Mapping[str, tuple[str, ...]] = {
    "check": ("--device", "emulated", "--timeout", "240", "--json"),
    "explain": ("--json",),
    "bench": ("--device", "emulated", "--sizes", "256", "--json"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one kernel."""

    repository: str
    file: str
    kernel: str
    lines: int
    """Lines of facts that were stated about it."""
    check: str
    failure: str
    """The first case that failed, and the kind of its first hazard."""
    cases: str
    """Cases that were checked, and those of them with padded rows."""
    explain: str
    bench: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row's cells as Markdown."""
        verdicts = (self.check, self.failure, self.cases, self.explain, self.bench)
        return (f"`{self.file}`", f"`{self.kernel}`", str(self.lines), *verdicts)

    @property
    def goes_through(self) -> bool:
        """True if all three verbs ran it and gave a verdict, right or wrong."""
        return self.lines <= MOST_LINES and "refused" not in (self.check, self.explain, self.bench)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    parser.add_argument("--only", default="", help="only files whose path contains this; prints, and writes no page")
    options = parser.parse_args()
    repositories = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    rows = [
        _row(options.folder, repository, kernel)
        for repository in repositories
        for kernel in repository["kernel"]
        if options.only in kernel["file"]
    ]
    text = page(repositories, rows)
    if options.only:
        sys.stdout.write(text)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def page(repositories: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
    """Return the generated part of the page."""
    through = sum(row.goes_through for row in rows)
    parts = [f"{through} of {len(rows)} kernels go through `check`, `explain` and `bench` as they are.\n"]
    for repository in repositories:
        own = [row for row in rows if row.repository == repository["name"]]
        if own:
            parts.append(f"`{repository['name']}` at commit `{repository['commit'][:12]}`: {repository['of']}.\n")
            parts.append(
                "| file | kernel | lines of facts | check | fails first at | cases (padded) | explain | bench |"
            )
            parts.append("|---|---|---:|---|---|---:|---|---|")
            parts += [f"| {' | '.join(row.cells)} |" for row in own]
            parts.append("")
    return "\n".join(parts)


def _row(folder: Path, repository: Mapping[str, Any], kernel: Mapping[str, Any]) -> Row:
    checkout = folder / repository["name"].replace("/", "+")
    facts = {**repository["facts"], **kernel["facts"]}
    with tempfile.TemporaryDirectory() as name:
        stated = Path(name) / "facts.toml"
        stated.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items()), encoding="utf-8")
        found = {verb: _run(verb, checkout / kernel["file"], stated) for verb in VERBS}
    reports = found["check"].get("reports") or [{}]
    check = "refused" if "cases" not in reports[0] else _checked(reports[0])
    cases = f"{reports[0]['cases']} ({reports[0]['padded']})" if "cases" in reports[0] else ""
    explained = found["explain"].get("kernels")
    rows = found["bench"].get("rows")
    counted = {True: "right", False: "wrong", None: "refused"}[rows[0]["verified"] if rows else None]
    if rows and rows[0]["verified"] is False:
        counted = "right, hazards" if all("reference" not in note for note in rows[0]["notes"]) else "wrong"
    name = str(facts.get("kernel") or Path(kernel["file"]).stem).partition("<")[0]
    row = Row(
        repository["name"], kernel["file"], name, len(facts), check, _failure(reports[0]), cases,
        "yes" if explained else "refused", counted,
    )  # fmt: skip
    sys.stderr.write(f"{row}\n")
    return row


def _checked(report: Mapping[str, Any]) -> str:
    if report["passed"]:
        return "right"
    if report["timed_out"] and not report["failures"]:
        return "right as far as it came"
    return "right, hazards" if report["right"] else "wrong"


def _failure(report: Mapping[str, Any]) -> str:
    failures = report.get("failures") or []
    if not failures:
        return ""
    first = failures[0]
    return ": ".join([first["problem"], *(note.partition(" at ")[0] for note in first["notes"][:1])])


def _run(verb: str, file: Path, facts: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "gemmlab", verb, str(file), "--facts", str(facts), *VERBS[verb]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if "error" in answer or not answer:
        sys.stderr.write(f"{verb} {file.name}: {answer.get('error') or done.stderr[-600:]}\n")
    elif answer.get("errors"):
        sys.stderr.write(f"{verb} {file.name}: {answer['errors']}\n")
    return answer


if __name__ == "__main__":
    main()
