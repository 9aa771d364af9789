"""Four processes of eight threads multiply at once for a few seconds; `GEMMLAB_STRESS_SECONDS=60` makes it a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.paths import TESTS

SECONDS = float(os.environ.get("GEMMLAB_STRESS_SECONDS", "4"))
LONG = 30


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.timeout(SECONDS + 120)
def test_nothing_is_wrong_in_any_thread_of_any_process() -> None:
    command = [sys.executable, "-m", "support.stress", str(SECONDS)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["exit_codes"] == [0] * 4
    assert report["wrong_here"] == 0
    for process in report["processes"]:
        assert (process["threads"], process["wrong"]) == (8, 0)
        assert process["done"] >= 80
        # Workspaces are added as long as more calls meet than ever before; in a long run that is over by the half.
        assert process["grown_kib"] < 16 << 10 or SECONDS < LONG
