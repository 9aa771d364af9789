"""The block on the bugs of asynchronous kernels that the emulator finds, and those that
compute-sanitizer's tools find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import load_json

RECORD = "h200/sanitizer.json"
SCHEMA = "gemmlab.sanitizer/1"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
_WORDS = (
    (r"invalid async operation synchronization", "asynchronous copy read too early"),
    (r"Potential (RAW|WAR|WAW) hazard", r"\1 hazard"),
    (r"Barrier error detected\. (.*)\.", r"\1"),
    (r"(Potential invalid \S+ \w+)", r"\1"),
    (r"Error: (.*?)( at .*|$)", r"\1"),
)
"""Pattern of a tool's report -> words for the table; the first pattern that is found counts."""
Launches = Mapping[str, Mapping[str, Any]]


def finding(row: Mapping[str, Any] | None) -> str:
    """Return in a few words what a tool reported of a launch: empty if nothing, `not run` for `None`."""
    if row is None:
        return "not run"
    if not row["errors"]:
        return ""
    for pattern, words in _WORDS:
        for line in row["report"]:
            if found := re.search(pattern, line):
                return found.expand(words).strip().lower()
    first: str = row["report"][0] if row["report"] else "an error"
    return first.lower().rstrip(".")


def alone(row: Mapping[str, Any] | None) -> str:
    """Return in a few words how a launch without a tool ends; `not run` for `None`."""
    said = " ".join(row["output"]) if row else ""
    if "TimeLimitError" in said:
        return "hangs"
    if "ILLEGAL_INSTRUCTION" in said:
        return "illegal instruction"
    return "fails" if "Error" in said else "ends" if said else "not run"


def table(record: Mapping[str, Any]) -> str:
    """Return a table with one row for each kernel with a bug, and sentences on the number of bugs found and on false
    reports of kernels without a bug.
    """
    launches: Launches = record["launches"]
    emulator = record.get("emulator", {})
    rows = [
        [
            name.removesuffix(" bug"), ", ".join(emulator.get(name, ())), alone(launches.get(name, {}).get("none")),
            *(finding(launches.get(name, {}).get(tool)) for tool in TOOLS),
        ]
        for name in emulator
        if name.endswith(" bug")
    ]  # fmt: skip
    heading = ["bug", "emulator", "alone", *TOOLS]
    found = [row for row in rows if any(cell not in ("", "not run") for cell in row[3:])]
    right = [name for name in emulator if name.endswith(" right")]
    alarms = [name for name in right if any(finding(launches[name].get(tool)) not in ("", "not run") for tool in TOOLS
              if name in launches)]  # fmt: skip
    ran = sum(row[2] != "not run" for row in rows)
    tools = f"{len(found)}" if ran == len(rows) else f"{len(found)} of the {ran} that it ran on"
    version = " ".join(record["sanitizer"])
    said = (
        f"The emulator reports {sum(bool(row[1]) for row in rows)} of {len(rows)} bugs; "
        f"at least one of the four tools, {tools}. Of {len(right)} kernels without a bug the emulator reports "
        f"{sum(bool(emulator[name]) for name in right) or 'none'}, the tools {len(alarms) or 'none'}. "
        f"(compute-sanitizer, {version}; an H200. An empty cell: nothing was said.)"
    )
    return f"{markdown_table(heading, rows, heading)}\n\n{said}"


def _block() -> str:
    record = load_json(RECORD, SCHEMA)
    return "" if record is None else table(record)


BLOCKS: Mapping[str, Callable[[], str]] = {"sanitizer": _block}
