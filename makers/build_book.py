"""Build the documentation site: `python makers/build_book.py [FOLDER]`, by default build/book; `make docs` runs it.

Pages come from docs/, README.md, CHANGELOG.md, the examples and the catalog of kernels. A warning of Sphinx is an
error: for a link or an anchor that leads nowhere, a page that no table of contents has, Markdown that cannot be read.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from blocks.records import ROOT
from book.links import BookError
from book.site import write_site
from gemmlab.core.errors import GemmlabError

CONFIGURATION = Path(__file__).parent / "book"


def build(folder: Path) -> int:
    """Write the pages to `folder/pages` and the site to `folder/html`; return Sphinx's exit code.

    Raises `BookError` for links to files that do not exist.
    """
    write_site(folder / "pages")
    return build_html(folder)


def build_html(folder: Path) -> int:
    """Make `folder/html` from `folder/pages`; return Sphinx's exit code, which is not 0 after a warning."""
    command = [
        sys.executable, "-m", "sphinx", "--builder", "html", "--quiet", "--fail-on-warning", "--nitpicky",
        "--conf-dir", str(CONFIGURATION), "--doctree-dir", str(folder / "doctrees"),
        str(folder / "pages"), str(folder / "html"),
    ]  # fmt: skip
    return subprocess.run(command, check=False).returncode


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "build" / "book"
    try:
        code = build(folder)
    except (BookError, GemmlabError) as error:
        print(error, file=sys.stderr)
        return 1
    if code == 0:
        print(f"Open {folder / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
