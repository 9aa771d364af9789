"""The block of docs/installing.md on the machine code for GPUs that is part of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.records import ROOT
from gemmlab.toolchain import code_archive


def archive_block() -> str:
    """Return a paragraph with the number of kernels for each architecture, and the size of all."""
    kernels = " and ".join(
        f"{found['instances']} kernels for {arch}" for arch, found in code_archive.contents().items()
    )
    files = (ROOT / "src" / "gemmlab" / "gpu_code").rglob("*")
    megabytes = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
    return f"`src/gemmlab/gpu_code` has {kernels}, in {megabytes:.1f} MB."


BLOCKS: Mapping[str, Callable[[], str]] = {"gpu-code": archive_block}
