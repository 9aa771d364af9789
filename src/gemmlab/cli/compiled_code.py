"""`gemmlab compile --prune` and `--clear`: make room in the cache of compiled code."""

from __future__ import annotations

from dataclasses import asdict

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.errors import UsageError
from gemmlab.core.words import counted


def make_room(*, everything: bool, as_json: bool) -> None:
    """Remove all compiled code if `everything`, else the least recently used code until the rest is within the limit.

    Without a limit, only `everything` removes code. Prints what was removed. Raises `UsageError` if there is no cache
    folder.
    """
    from gemmlab.toolchain import cache_bound
    from gemmlab.toolchain.cache import cache_dir

    folder = cache_dir()
    if folder is None:
        raise UsageError("there is no home folder, so there is no cache; GEMMLAB_CACHE_DIR names a folder for it")
    most = cache_bound.limit()
    if everything:
        removed = cache_bound.clear(folder)
    else:
        removed = cache_bound.prune(folder, cache_bound.size(folder) if most is None else most)
    if as_json:
        print_json({"cache": str(folder), "limit_bytes": most, **asdict(removed)})
        return
    bound = "no bound" if most is None else f"a limit of {most / 1e6:,.0f} MB"
    files = f"{counted(removed.files, 'file')} removed ({removed.nbytes / 1e6:,.1f} MB)"
    typer.echo(f"{folder}: {files}, {removed.left / 1e6:,.1f} MB left, {bound} ({cache_bound.VARIABLE})")
