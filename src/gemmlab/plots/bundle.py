"""Vega, Vega-Lite and vegaEmbed as one script, which takes seconds to make and is cached in a file.

The file's name has the version of vl-convert-python, which makes the script.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from gemmlab.core.files import replace_file
from gemmlab.plots.script_notices import notices
from gemmlab.toolchain import private_files
from gemmlab.toolchain.cache import private_folder

_SNIPPET = "window.vegaEmbed = vegaEmbed;"
_FOLDER = "charts"


@cache
def vega_bundle() -> str:
    """Return the text of a script element. It defines `vegaEmbed`, and contains nothing that closes the element.

    It begins with the notices of the scripts' authors (`plots.script_notices`).
    """
    return f"/*!\n{notices()}\n*/\n{_scripts()}"


def _scripts() -> str:
    import vl_convert

    stored = _place(metadata.version("vl-convert-python"))
    if stored is not None:
        with suppress(OSError, zlib.error, UnicodeDecodeError):
            return zlib.decompress(private_files.read(stored)).decode()
    # Browsers read carriage returns as line feeds, so that the digest of the script would not match.
    bundle = str(vl_convert.javascript_bundle(_SNIPPET)).replace("</script", "<\\/script").replace("\r", "")
    if stored is not None:
        with suppress(OSError):
            replace_file(stored, zlib.compress(bundle.encode()))
    return bundle


def _place(version: str) -> Path | None:
    folder = private_folder(_FOLDER)
    return None if folder is None else folder / f"vega-{version}.js.z"
