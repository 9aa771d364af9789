"""Write CUDA C++ that a caller passes as text to a file: other processes and the compiler's messages name files."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path

from gemmlab.kernels.cuda_file.signature import signatures

DEFAULT_NAME = "kernel"


def is_source(text: str) -> bool:
    """Return whether `text` is CUDA C++, not a name or path: it has a line end or `__global__`."""
    return "\n" in text or "__global__" in text


def source_file(text: str, name: str = "") -> Path:
    """Write the text to `name.cu` in a folder of this process, and return the path, the same for equal arguments.

    Reports show this name. It is by default that of the text's only kernel; with several, or none, `DEFAULT_NAME`. The
    folder is deleted when Python ends.
    """
    kernels = [found.name.rpartition("::")[2] for found in signatures(text)]
    stem = name or (kernels[0] if len(kernels) == 1 else DEFAULT_NAME)
    path = _folder() / hashlib.sha256(text.encode()).hexdigest()[:16] / f"{stem}.cu"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="gemmlab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
