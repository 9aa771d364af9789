"""Vega, Vega-Lite and their embedding as one script: put together once a version, which takes seconds, and kept."""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from gemmlab.core.files import replace_file
from gemmlab.toolchain import private_files
from gemmlab.toolchain.cache import private_folder

_SNIPPET = "window.vegaEmbed = vegaEmbed;"
_FOLDER = "charts"


@cache
def vega_bundle() -> str:
    """To stand in a script element: it defines `vegaEmbed`, and nothing in it ends the element."""
    import vl_convert

    kept = _place(metadata.version("vl-convert-python"))
    if kept is not None:
        with suppress(OSError, zlib.error, UnicodeDecodeError):
            return zlib.decompress(private_files.read(kept)).decode()
    # Carriage returns would be read as line feeds, and a digest of the script would be of another text.
    bundle = str(vl_convert.javascript_bundle(_SNIPPET)).replace("</script", "<\\/script").replace("\r", "")
    if kept is not None:
        with suppress(OSError):
            replace_file(kept, zlib.compress(bundle.encode()))
    return bundle


def _place(version: str) -> Path | None:
    folder = private_folder(_FOLDER)
    return None if folder is None else folder / f"vega-{version}.js.z"
