"""Makes the text of the package page of README.md: there, a relative link or picture leads nowhere.

`GEMMLAB_REPOSITORY` in the environment of the build is the address at which the files of this version can be read, such
as `https://github.com/OWNER/gemmlab/blob/v0.1.0`; links become absolute with it, and pictures lead to the file itself.
Without it the page has no relative links: pictures are left out, and links are plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "GEMMLAB_REPOSITORY"
_LINK = re.compile(r"(?P<bang>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:", "#")


class ReadmeHook(MetadataHookInterface):
    """Sets the metadata `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and make its links absolute."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        page = with_absolute_links(text, os.environ.get(VARIABLE, "").strip())
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def with_absolute_links(text: str, repository: str) -> str:
    """Return Markdown in which no link is relative; `repository` is the address of its folder, or empty."""

    def absolute(found: re.Match[str]) -> str:
        picture, words, target = bool(found["bang"]), found["text"], found["target"]
        if target.startswith(_ELSEWHERE):
            return found[0]
        if not repository:
            return "" if picture else words
        address = f"{repository.rstrip('/')}/{target}"
        return f"![{words}]({address}?raw=true)" if picture else f"[{words}]({address})"

    return _LINK.sub(absolute, text)
