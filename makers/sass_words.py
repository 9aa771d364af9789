"""Decode and encode again every instruction word of the catalog, and count the bits that are copied without a meaning.

    python makers/sass_words.py [--arch sm_80 ...] [--out benchmarks/results/emulated/sass-words.json]

Each cubin of a wheel is rebuilt from decoded fields and has to be the same to the byte.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gemmlab.devices.emulated import ARCHITECTURES
from gemmlab.precompile.shipping import shipped_jobs
from gemmlab.sass.parse import parse
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.word import decode, encode, understood
from gemmlab.toolchain.build_cuda import compile_here


def count(arch: str) -> dict[str, Any]:
    """Rebuild all code of an architecture; return the record's row. Raises `SystemExit` for a cubin that is not the
    same.
    """
    builds = words = 0
    carried: Counter[str] = Counter()
    # Builds of one kernel have many words in common.
    known: dict[tuple[int, str], tuple[int, tuple[str, ...]]] = {}
    opcodes: dict[str, set[str]] = {}
    for job in shipped_jobs(archs=[arch]):
        artifact, _ = compile_here(job.program)
        code = artifact.code
        for function in parse(artifact.texts["sass"]).values():
            made = []
            for instruction in function.instructions:
                key = instruction.encoding, instruction.text
                if key not in known:
                    word = decode(instruction)
                    rest = tuple(name for name, _, _, value in word.rest if value and not understood(name))
                    known[key] = encode(word), rest
                made.append(known[key][0])
                for name in known[key][1]:
                    carried[name] += 1
                    opcodes.setdefault(name, set()).add(instruction.opcode)
            code = with_words(code, function, made, name=job.program.entry)
            words += len(made)
        if code != artifact.code:
            raise SystemExit(f"{arch} {job.program.entry}: other bytes after the round trip")
        builds += 1
    fields = [[name, times, sorted(opcodes[name])] for name, times in carried.most_common()]
    return {"arch": arch, "builds": builds, "words": words, "carried": fields}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/emulated/sass-words.json"))
    given = parser.parse_args()
    rows = json.loads(given.out.read_text(encoding="utf-8"))["rows"] if given.out.exists() else []
    for arch in given.arch:
        made = count(arch)
        rows = [*(row for row in rows if row["arch"] != arch), made]
        print(f"{arch}: {made['builds']} builds, {made['words']} words, all the same")
    command = "python makers/sass_words.py"
    record = {
        "schema": "gemmlab.sass-words/1",
        "command": command,
        "rows": sorted(rows, key=lambda row: str(row["arch"])),
    }
    given.out.write_text(json.dumps(record) + "\n", encoding="utf-8")
