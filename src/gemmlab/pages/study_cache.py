"""Cache of studies, as JSON files in the cache folder; a change of anything that a study depends on invalidates it.

Studies of a user's own file are not cached.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab.core.errors import NoCompilerError
from gemmlab.core.files import replace_file
from gemmlab.core.sources import Sources
from gemmlab.kernels.catalog import SOURCE_SUFFIXES
from gemmlab.pages.charts import Drawing
from gemmlab.pages.studies import Request, Study
from gemmlab.toolchain import private_files
from gemmlab.toolchain.cache import key_of, private_folder
from gemmlab.toolchain.nvrtc import compiler

_FOLDER = "studies"
_UNRELATED = frozenset({"blas", "cli", "torch"})
"""Folders of the package that no study depends on. These are listed instead of the others, so that studies depend on a
new folder by default.
"""
_SUFFIXES = (".py", ".cu", ".cuh")
"""Suffixes of the files that a study depends on."""
_OTHERS = ("altair", "llvmlite", "numpy", "nvidia-cuda-nvdisasm")
"""Packages whose versions a study depends on, in addition to the compiler's."""


def recall(request: Request) -> Study | None:
    """Return the cached study of a request; `None` if there is none that is readable and current."""
    path = _path(request)
    if path is None:
        return None
    try:
        return _study(json.loads(zlib.decompress(private_files.read(path))))
    except (OSError, zlib.error, ValueError, KeyError, TypeError):
        return None


def keep(request: Request, study: Study) -> None:
    """Store a study, and delete those made by other versions of the code, the compiler or the packages it depends on.

    Failures to write are ignored.
    """
    path = _path(request)
    if path is None:
        return
    with suppress(OSError):
        # Not `asdict`, which copies every mark of every picture.
        plain = {one.name: getattr(study, one.name) for one in fields(study)}
        plain["drawings"] = [{one.name: getattr(drawing, one.name) for one in fields(drawing)}
                             for drawing in study.drawings]  # fmt: skip
        replace_file(path, zlib.compress(json.dumps(plain).encode()))
        for other in path.parent.glob("*.json.z"):
            if other.name.partition("-")[0] != path.name.partition("-")[0]:
                other.unlink(missing_ok=True)


def _path(request: Request) -> Path | None:
    # A user's own file is not cached: it may include files that the key does not cover.
    own = request.kernel.endswith(SOURCE_SUFFIXES)
    code = "" if own else _sources().fingerprint()
    folder = private_folder(_FOLDER) if code else None
    if folder is None:
        return None
    made_by = key_of(code, *_versions())
    return folder / f"{made_by[:16]}-{key_of(repr(request))[:32]}.json.z"


def source_files(package: Path) -> Iterator[Path]:
    """Yield the files of the package that determine a study's results."""
    for path in package.rglob("*"):
        if path.suffix in _SUFFIXES and path.relative_to(package).parts[0] not in _UNRELATED:
            yield path


@cache
def _sources() -> Sources:
    package = Path(gemmlab.__file__).parent
    return Sources(source_files(package))


@cache
def _versions() -> tuple[str, ...]:
    found = []
    for name in _OTHERS:
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    with suppress(NoCompilerError):
        found.append(compiler())
    return tuple(found)


def _study(data: Mapping[str, Any]) -> Study:
    return Study(
        explanation=data["explanation"],
        figures=tuple((group, name, text) for group, name, text in data["figures"]),
        hazards=tuple(data["hazards"]),
        prediction=data["prediction"],
        undrawn=data["undrawn"],
        drawings=tuple(Drawing(**drawing) for drawing in data["drawings"]),
    )
