"""The user's folder for measurements of this machine. Unlike a cache's contents, they take long to make again."""

from __future__ import annotations

import os
from pathlib import Path

from gemmlab.core.errors import UsageError


def data_dir() -> Path | None:
    """Return the folder that `GEMMLAB_DATA_DIR` names, else the user's data folder.

    The folder may not exist. `None` if its path depends on the user's home, which is unknown.
    """
    named = os.environ.get("GEMMLAB_DATA_DIR")
    try:
        if named:
            return Path(named).expanduser()
        from platformdirs import user_data_path

        found = user_data_path("gemmlab", appauthor=False)
    except RuntimeError:
        return None
    # If the home is unknown, `expanduser` may leave `~` as it is.
    return found if found.is_absolute() else None


def require_data_dir() -> Path:
    """Return the folder of `data_dir`, created if necessary. Raises `UsageError` if that is impossible."""
    found = data_dir()
    if found is None:
        raise UsageError("there is no home to store measurements in; set HOME or GEMMLAB_DATA_DIR")
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"measurements cannot be stored in {found}: {error.strerror or error}") from error
    return found
