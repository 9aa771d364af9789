"""The compiled product on Windows and on Arm, as far as emulators of those go; skipped where there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gemmlab.codegen import runtime
from gemmlab.ir.target import Target
from support.foreign_code import COFF, TARGETS, compile_foreign, product, workspace_bytes
from support.paths import DATA

DRIVER = DATA / "foreign_product.c"


@dataclass(frozen=True)
class Machine:
    target: Target
    compiler: str
    runner: str
    options: tuple[str, ...] = ()


MACHINES = {
    "Windows under wine": Machine(
        replace(TARGETS["Windows, SSE"], triple=COFF), "x86_64-w64-mingw32-gcc", "/usr/lib/wine/wine64"
    ),
    "Arm under qemu": Machine(
        TARGETS["Linux, Arm"], "aarch64-linux-gnu-gcc", "qemu-aarch64-static", ("-static", "-pthread")
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_products_are_right_on_any_number_of_threads(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    for tool in (machine.compiler, machine.runner):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (tmp_path / "product.o").write_bytes(compile_foreign(product(machine.target), machine.target))
    layout = {
        "BYTES": runtime._BYTES, "SLOTS": runtime.SLOTS, "SLOTS_AT": runtime.SLOTS_AT, "WORKERS_AT": runtime.WORKERS_AT,
        "DEFAULT_THREADS_AT": runtime.DEFAULT_THREADS_AT, "WORKSPACE_BYTES": workspace_bytes(machine.target),
    }  # fmt: skip
    (tmp_path / "layout.h").write_text("".join(f"#define {word} {value}\n" for word, value in layout.items()))
    program = tmp_path / "program.exe"
    link: list[str | Path] = [
        machine.compiler,
        "-O1",
        f"-I{tmp_path}",
        DRIVER,
        tmp_path / "product.o",
        *machine.options,
        "-lm",
    ]
    linked = subprocess.run([*link, "-o", program], capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr
    environment = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    done = subprocess.run(
        [machine.runner, program], capture_output=True, text=True, check=False, env=environment, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("96 calls")
