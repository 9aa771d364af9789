"""Code is linked wherever the system puts it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import SUPPORT


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are given out as Linux does it")
@pytest.mark.parametrize("system", ["this", "windows"])
def test_code_and_constants_may_come_to_lie_far_apart(system: str) -> None:
    script = SUPPORT / "torn_memory.py"
    done = subprocess.run([sys.executable, str(script), system], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
