"""Run public kernels through check, explain and bench, and write the table: `python makers/public_kernels.py FOLDER`.

FOLDER has a checkout of each repository of `public_kernels.toml`, named OWNER+NAME, at the commit that the file names.
Nothing is written into FOLDER, and no code of the repositories enters the project: the table has names and verdicts. A
file in `public_operations` states the operation of a kernel that is no product. Rows are stored one by one, so that a
run may be stopped; `--new` runs only kernels that have no row.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab.verify.verdict import OVERFLOW

HERE = Path(__file__).parent
ROWS = HERE.parent / "benchmarks" / "results" / "public-kernels.json"
OPERATIONS = HERE / "public_operations"
LIST, PAGE = HERE / "public_kernels.toml", HERE.parent / "docs" / "public-kernels.md"
BEGIN, END = "<!-- begin public kernels -->", "<!-- end public kernels -->"
MOST_LINES = 10
"""The most lines of facts with which a kernel counts as one that goes through unchanged."""
DEVICE = "emulated"


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one kernel; `check`, `explain` and `bench` are verdicts in a word or two."""

    repository: str
    file: str
    kernel: str
    lines: int
    """Lines of facts that were stated about it."""
    check: str
    failure: str
    """The first case that failed, and the kind of its first hazard; empty if none failed."""
    cases: str
    """The number of cases that were checked, and in brackets of those with padded rows."""
    explain: str
    bench: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row's cells as Markdown."""
        verdicts = (self.check, self.failure, self.cases, self.explain, self.bench)
        return (f"`{self.file}`", f"`{self.kernel}`", str(self.lines), *verdicts)

    @property
    def goes_through(self) -> bool:
        """True if it needs at most `MOST_LINES` lines of facts, and check, explain and bench ran it,
        with any verdict.
        """
        return self.lines <= MOST_LINES and "refused" not in (self.check, self.explain, self.bench)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    parser.add_argument("--only", default="", help="only kernels whose file and name contain this")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds of a check")
    parser.add_argument("--new", action="store_true", help="only kernels without a row")
    options = parser.parse_args()
    repositories = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    rows = stored_rows()
    for repository in repositories:
        for kernel in repository["kernel"]:
            key = key_of(repository, kernel)
            if options.only in key and not (options.new and key in rows):
                rows[key] = _row(options.folder, repository, kernel, options.timeout)
                ROWS.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=1) + "\n")
    wanted = [key_of(repository, kernel) for repository in repositories for kernel in repository["kernel"]]
    text = page(repositories, [rows[key] for key in wanted if key in rows])
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def stored_rows() -> dict[str, Row]:
    """Return the rows of earlier runs by key."""
    if not ROWS.is_file():
        return {}
    return {name: Row(**values) for name, values in json.loads(ROWS.read_text(encoding="utf-8")).items()}


def key_of(repository: Mapping[str, Any], kernel: Mapping[str, Any]) -> str:
    """Return the name of a kernel of the list: repository, file, function."""
    return f"{repository['name']} {kernel['file']} {kernel['facts'].get('kernel', '')}".strip()


def page(repositories: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
    """Return the generated part of the page."""
    through = sum(row.goes_through for row in rows)
    others = sum(repository.get("others", 0) for repository in repositories)
    share = through / (len(rows) + others)
    said = (
        f"{through} of {len(rows) + others} kernels ({share:.0%}) go through `check`, `explain` and `bench` as they are"
    )
    parts = [f"{said}; {len(rows) - through + others} do not.\n"]
    for repository in repositories:
        own = [row for row in rows if row.repository == repository["name"]]
        if own:
            parts.append(f"`{repository['name']}` at commit `{repository['commit'][:12]}`: {repository['of']}.\n")
            if "without" in repository:
                parts.append(
                    f"{repository['others']} kernels that have no row do not go through: {repository['without']}.\n"
                )
            parts.append(
                "| file | kernel | lines of facts | check | fails first at | cases (padded) | explain | bench |"
            )
            parts.append("|---|---|---:|---|---|---:|---|---|")
            parts += [f"| {' | '.join(row.cells)} |" for row in own]
            parts.append("")
    return "\n".join(parts)


def _row(folder: Path, repository: Mapping[str, Any], kernel: Mapping[str, Any], timeout_s: float) -> Row:
    checkout = folder / repository["name"].replace("/", "+")
    facts = {**repository["facts"], **kernel["facts"]}
    op, file, sizes = operation(kernel), checkout / kernel["file"], kernel.get("sizes")
    found = {
        "check": _answer(lambda: gemmlab.check(file, op=op, facts=facts, device=DEVICE, timeout_s=timeout_s)),
        "explain": _answer(lambda: gemmlab.explain(file, op=op, facts=facts, sizes=sizes)),
        "bench": _answer(
            lambda: gemmlab.bench(
                file, op=op, facts=facts, device=DEVICE, sizes=sizes or ("256" if op is None else None)
            )
        ),
    }
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
    if report["right"]:
        return "right, hazards"
    return OVERFLOW if report["verdict"]["kind"] == OVERFLOW else "wrong"


def _failure(report: Mapping[str, Any]) -> str:
    failures = report.get("failures") or []
    if not failures:
        return ""
    first = failures[0]
    return ": ".join([first["problem"], *(hazard["kind"] for hazard in first["hazards"][:1])])


def operation(kernel: Mapping[str, Any]) -> str | None:
    """Return the file that states what a kernel of the list computes; `None` for a product."""
    return str(OPERATIONS / f"{kernel['op']}.py") if "op" in kernel else None


def _answer(call: Callable[[], Any]) -> dict[str, Any]:
    """Return the answer of check, explain or bench as JSON values; empty if it refuses the kernel."""
    try:
        answer: dict[str, Any] = call().to_json()
    except (gemmlab.GemmlabError, MemoryError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return {}
    if answer.get("errors"):
        sys.stderr.write(f"{answer['errors']}\n")
    return answer


if __name__ == "__main__":
    main()
