"""`python makers/public_kernel_errors.py FOLDER`: plant an error in each public kernel, for `check`.

The first barrier of the kernel is dropped; a kernel without barriers takes one step too many along k. The copies lie in
a temporary folder. FOLDER is that of `public_kernels.py`, whose list is used.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from public_kernels import LIST, PAGE

BEGIN, END = "<!-- begin planted errors -->", "<!-- end planted errors -->"
_BARRIER, _END_OF_K = re.compile(r"__syncthreads\(\);"), re.compile(r"\w+ < [Kk];")


def main() -> None:
    """Run the command line, and write the sentence into the page."""
    folder, found = Path(sys.argv[1]), list[tuple[bool, bool]]()
    for repository in tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]:
        for kernel in repository["kernel"]:
            source = folder / repository["name"].replace("/", "+") / kernel["file"]
            facts = {**repository["facts"], **kernel["facts"]}
            text = source.read_text(encoding="utf-8")
            before, after = _report(source, text, facts), _report(source, planted(text, facts), facts)
            found.append((bool(before["passed"]), bool(after["failures"])))
            sys.stderr.write(f"{source.name} {facts.get('kernel', '')}: {found[-1]}\n")
    sound = [one for passed, one in found if passed]
    of_sound, rejected = sum(sound), sum(one for _, one in found)
    text = (
        f"{of_sound} of the {len(sound)} kernels that pass `check` are rejected once their first barrier is dropped\n"
        f"(without barriers: one step too many along k), and {rejected} of all {len(found)}."
    )
    before_it, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before_it}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def planted(text: str, facts: Mapping[str, Any]) -> str:
    """Return the text of a file with an error in the kernel that the facts name. `ValueError` if there is no place."""
    name = str(facts.get("kernel", "")).partition("<")[0]
    start = text.index(f"{name}(" if name else "__global__")
    stop = text.find("__global__", start + len("__global__"))
    body = text[start : stop if stop >= 0 else len(text)]
    if (barrier := _BARRIER.search(body)) is not None:
        body = body[: barrier.start()] + body[barrier.end() :]
    elif (end := _END_OF_K.search(body)) is not None:
        body = body[: end.start()] + end[0].replace("<", "<=") + body[end.end() :]
    else:
        raise ValueError(f"{name}: neither a barrier nor a loop along k")
    return text[:start] + body + (text[stop:] if stop >= 0 else "")


def _report(source: Path, text: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Check a copy of a file, whose own folders of headers stay where they are."""
    with tempfile.TemporaryDirectory() as name:
        copy, stated = Path(name) / source.name, Path(name) / "facts.toml"
        copy.write_text(text, encoding="utf-8")
        options = [f"-I{(source.parent / option[2:]).resolve()}" if option.startswith("-I") else option
                   for option in (*facts.get("options", ()), "-I.")]  # fmt: skip
        lines = {**facts, "options": options}
        stated.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items()), encoding="utf-8")
        command = ["check", str(copy), "--facts", str(stated), "--device", "emulated", "--timeout", "240", "--json"]
        done = subprocess.run([sys.executable, "-m", "gemmlab", *command], capture_output=True, text=True, check=False)
        report: dict[str, Any] = json.loads(done.stdout)["reports"][0]
        return report


if __name__ == "__main__":
    main()
