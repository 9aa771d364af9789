"""The product on 16 and 64 workers, far more than the cores here: the same bits, and an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import TESTS


@pytest.mark.slow
@pytest.mark.parametrize("threads", [16, 64])
def test_many_workers_compute_the_bits_of_one(threads: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.many_workers", str(threads)], cwd=TESTS, capture_output=True, text=True,
        timeout=240, check=False, env={**os.environ, "GEMMLAB_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["workers"] == threads - 1
    assert found["shared"] > 30, "products did not share their packed strips"
