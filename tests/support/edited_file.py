"""The file that `gemmlab new` writes, with a fault."""

from __future__ import annotations

from pathlib import Path

from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport


def edited(tmp_path: Path, *edits: tuple[str, str]) -> CheckReport:
    """Check the file that `gemmlab new` writes, with some of its text replaced."""
    path = tmp_path / "mine.cu"
    text = starting_text(path)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return check_kernel(user_kernel(path), open_device("emulated"), GemmOp())
