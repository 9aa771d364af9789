"""A page of a kernel that was timed on this GPU: its code is the code that is explained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import model
from gemmlab.devices.cuda import CudaDevice


def gemmlab(*arguments: str) -> Any:
    """What a verb answers with `--json`."""
    done = subprocess.run(
        [sys.executable, "-m", "gemmlab", *arguments, "--json"],
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("emulated_too")
def test_times_and_code_meet(gpu: CudaDevice, tmp_path: Path) -> None:
    try:
        model(gpu.name)
    except UsageError as error:
        pytest.skip(str(error))
    for package in ("altair", "vl_convert", "jinja2"):
        pytest.importorskip(package)
    record, page = str(tmp_path / "bench.json"), str(tmp_path / "page.html")
    gemmlab("bench", "naive", "--device", "cuda", "--sizes", "512", "--peers", "", "--rounds", "3", "--processes", "1",
            "--no-naive", "--save", record)  # fmt: skip
    told = gemmlab("report", record, "--out", page)
    assert told["kernels"] == [{"id": "naive", "explained": True, "why_not": "", "same_code": True}]
    assert "The same code as timed on" in Path(page).read_text(encoding="utf-8")
