"""An `ncu` that profiles nothing: what is asked of it decides what it prints, in the words of the real one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REFUSED = (
    'print("==PROF== Connected to process 1")\n'
    '    sys.exit("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance '
    'Counters on the target device 0.")'
)
TEXT = """#!{python}
import json, sys
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0")
elif "--import" in arguments:
    launches = json.load(open(arguments[arguments.index("--import") + 1]))
    print("==PROF== Connected")
    if arguments[-1] == "raw":
        print('"ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum","lts__t_sector_hit_rate.pct"')
        print('"","","ns","inst","%"')
        for place, name in enumerate(launches):
            print(f'"{{place}}","{{name}}","{{1000 + place}}","1,300","n/a"')
    for name in launches if arguments[-1] == "source" else ():
        print(f'"Kernel Name","{{name}}"')
        print('"#","Source","Instructions Executed","L1 Wavefronts Shared"')
        print('"0","MOV R1, R2","1,000","0"')
        print('"16","@!P0 LDS.128 R4, [R2]","300","640"')
else:
    WHEN_PROFILED
    plan, done = json.load(open(arguments[-2])), []
    launches = []
    for spec in plan["specs"]:
        for problem in plan["problems"]:
            size = "x".join(str(problem[name]) for name in "mnk")
            ours = spec["kind"] == "kernel"
            done.append({{"contestant": spec["name"], "size": size, "facts": {{"config": {{"BM": 32}}}},
                         "launches": 1 if ours else None}})
            launches += [spec["name"]] if ours else ["main", "reduce"]
    json.dump(done, open(arguments[-1], "w"))
    json.dump(launches, open(arguments[arguments.index("--export") + 1], "w"))
"""


def put_ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, when_profiled: str = "pass") -> None:
    """Make it the first on the PATH; `when_profiled` is run before it pretends to profile."""
    file = folder / "ncu"
    file.write_text(TEXT.format(python=sys.executable).replace("WHEN_PROFILED", when_profiled))
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
