"""A room that needs a package which is not installed names the extra that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("room", "extra"), [("distributed", "torch"), ("torch", "torch"), ("dask", "dask")])
def test_the_extra_is_named(room: str, extra: str) -> None:
    code = f"import sys; sys.modules[{extra!r}] = None; import gemmlab.{room}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"gemmlab.{room} needs {extra}: pip install 'gemmlab[{extra}]'" in done.stderr
