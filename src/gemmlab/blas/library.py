"""The BLAS entries as a file: an object to link, or a shared library for programs without Python."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gemmlab.blas.native import SYMBOLS, compiled
from gemmlab.core.errors import CompileError, UsageError
from gemmlab.core.files import replace_file
from gemmlab.ir.target import WIDTHS

OBJECT, LIBRARY = ".o", ".so"


def write_library(path: str | Path, lanes: int | None = None) -> Path:
    """Write the entries to `path`, for this machine's processor, and return it.

    A path that ends with `.o` gets the object file; for `.so` the system's C compiler (`CC`, else `cc`, `gcc` or
    `clang`) links it. An existing file is replaced atomically. `lanes` is the number of float32 in a vector (4, 8 or
    16), by default that of the processor's widest vectors. Raises `UsageError` for another ending, a folder that does
    not exist or cannot be written to, an impossible width, and a system without such libraries or without a compiler,
    `DeviceError` for vectors that this processor lacks, `CompileError` when compiling or linking fails.
    """
    path = Path(path)
    if lanes is not None and lanes not in WIDTHS:
        raise UsageError(f"vectors of {lanes} float32: there are {', '.join(map(str, WIDTHS))}")
    if path.suffix not in (OBJECT, LIBRARY):
        raise UsageError(f"{path}: the name must end with {LIBRARY} (a shared library) or {OBJECT} (an object file)")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    linker = _linker(path) if path.suffix == LIBRARY else []
    code = compiled(lanes).code
    try:
        with tempfile.TemporaryDirectory(prefix=".gemmlab-", dir=path.parent) as folder:
            made = Path(folder, f"blas{OBJECT}")
            made.write_bytes(code)
            if linker:
                made = _linked(linker, made, path.name)
            replace_file(path, made.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _linker(path: Path) -> list[str]:
    if not sys.platform.startswith("linux"):
        raise UsageError(f"{path}: shared libraries are made on Linux only; {path.with_suffix(OBJECT)} can be linked")
    named = shlex.split(os.environ.get("CC", ""))
    found = named or next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])
    if not found:
        raise UsageError(
            f"{path}: no C compiler to link it with; set CC, or write {path.with_suffix(OBJECT)}, which needs none"
        )
    return found


def _linked(linker: list[str], code: Path, name: str) -> Path:
    """Link the shared library. It exports only its entries and is never unloaded, because its threads may sleep in its
    code.
    """
    shown, made = code.with_suffix(".map"), code.with_suffix(LIBRARY)
    shown.write_text(f"{{ global: {'; '.join(SYMBOLS)}; local: *; }};\n", encoding="ascii")
    options = ["-shared", "-pthread", f"-Wl,-soname,{name}", f"-Wl,--version-script={shown}", "-Wl,-z,nodelete"]
    try:
        done = subprocess.run([*linker, *options, "-o", made, code], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(f"{name}: {linker[0]} could not be run: {error.strerror}") from error
    if done.returncode:
        raise CompileError(f"{name} could not be linked by {' '.join(linker)}: {done.stderr.strip()}")
    return made
