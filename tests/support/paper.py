"""What a printed page has on it."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress


def placed(pdf: bytes) -> int:
    """Return the number of shapes and texts that are placed on the pages of a PDF file."""
    found = 0
    for part in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        with suppress(zlib.error):
            found += len(re.findall(rb"\b(?:T[jJ]|[fS]|re)\b", zlib.decompress(part)))
    return found
