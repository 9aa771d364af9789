"""Run public kernels through check, explain and bench, and write the table: `python makers/public_kernels.py FOLDER`.

FOLDER has a checkout of each repository of `public_kernels.toml`, named OWNER+NAME, at the commit that the file names.
Nothing is written into FOLDER, and no code of the repositories enters the project: the table has names and verdicts. A
file in `public_operations` states the operation of a kernel that is no product. All kernels of the checkouts are
counted first: each must be listed, or left out with a reason. Rows are stored one by one, so that a run may be stopped;
`--new` runs only kernels that have no row, or whose facts are no longer those of their row.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_SUFFIXES = {".cu", ".cuh", ".h", ".hpp", ".cc", ".cpp"}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")


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
    stated: str
    """The digest of what was stated about the kernel."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row's cells as Markdown."""
        verdicts = (self.check, self.failure, self.cases, self.explain, self.bench)
        return (f"`{self.file}`", f"`{self.kernel}`", str(self.lines), *verdicts)

    @property
    def passes(self) -> bool:
        """True if `check` found no fault in the cases that it ran."""
        return self.check.startswith("right") and not self.failure

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
    parser.add_argument("--new", action="store_true", help="only kernels without a row of their present facts")
    options = parser.parse_args()
    repositories = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    if complaints := [text for repository in repositories for text in miscounted(options.folder, repository)]:
        sys.exit("\n".join(complaints))
    wanted = [key_of(repository, kernel) for repository in repositories for kernel in repository["kernel"]]
    rows = {key: row for key, row in stored_rows().items() if key in wanted}
    for repository in repositories:
        for kernel in repository["kernel"]:
            key = key_of(repository, kernel)
            made = key in rows and rows[key].stated == stated(repository, kernel)
            if options.only in key and not (options.new and made):
                rows[key] = _row(options.folder, repository, kernel, options.timeout)
                ROWS.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=1) + "\n")
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


def stated(repository: Mapping[str, Any], kernel: Mapping[str, Any]) -> str:
    """Return a digest of the facts, the operation and the sizes that the list states about a kernel."""
    all_of_it = ({**repository["facts"], **kernel["facts"]}, kernel.get("op"), kernel.get("sizes"))
    return hashlib.sha256(json.dumps(all_of_it, sort_keys=True).encode()).hexdigest()[:12]


def kernels_in(text: str) -> Iterator[str]:
    """Yield the name behind each `__global__` of a CUDA source, without those in comments."""
    for part in _COMMENT.sub(" ", text).split("__global__")[1:]:
        named = re.search(r"(\w+)\s*\(", _BOUNDS.sub(" ", part))
        if named is not None:
            yield named[1]


def miscounted(folder: Path, repository: Mapping[str, Any]) -> list[str]:
    """Return a complaint for each kernel of a checkout that the list lacks, and for each that the checkout lacks."""
    checkout = folder / repository["name"].replace("/", "+")
    files = {path.relative_to(checkout).as_posix(): path for path in sorted(checkout.rglob("*"))}
    names = {
        file: [*kernels_in(path.read_text(encoding="utf-8", errors="replace"))]
        for file, path in files.items()
        if path.suffix in _SUFFIXES and path.is_file()
    }
    listed = {name for left in repository.get("left_out", ()) for name in left["kernels"]}
    for kernel in repository["kernel"]:
        only = names.get(kernel["file"], ())
        name = str(kernel["facts"].get("kernel") or (only[0] if len(only) == 1 else "?"))
        listed.add(f"{kernel['file']} {name.partition('<')[0]}")
    there = {f"{file} {name}" for file, found in names.items() for name in found}
    return [
        *(f"{repository['name']}: {name} is neither listed nor left out" for name in sorted(there - listed)),
        *(f"{repository['name']}: {name} is not there" for name in sorted(listed - there)),
    ]


def page(repositories: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
    """Return the generated part of the page."""
    through = sum(row.goes_through for row in rows)
    listed = sum(len(repository["kernel"]) for repository in repositories)
    left_out = sum(len(left["kernels"]) for repository in repositories for left in repository.get("left_out", ()))
    counted = listed + left_out
    share = f"{through} of {counted} kernels ({through / counted:.0%})"
    parts = [f"{share} go through `check`, `explain` and `bench` as they are; {counted - through} do not.\n"]
    for repository in repositories:
        own = [row for row in rows if row.repository == repository["name"]]
        if own:
            parts.append(f"`{repository['name']}` at commit `{repository['commit'][:12]}`: {repository['of']}.\n")
            for left in repository.get("left_out", ()):
                names = ", ".join(f"`{name.split()[1]}`" for name in left["kernels"])
                parts.append(f"{len(left['kernels'])} kernels have no row, and count as ones that do not go through:")
                parts.append(f"{left['why']}. They are {names}.\n")
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
        "yes" if explained else "refused", counted, stated(repository, kernel),
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
