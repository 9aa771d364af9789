"""Take the pictures of the kernel page in docs/pictures, in Chromium: on a desktop, in dark mode on a phone, and with
two kernels side by side.

    PYTHONPATH=tests python makers/kernel_page_pictures.py

The first two show a kernel with a race, a bank conflict and a header (tests/support/page_kernels.py).
"""

from __future__ import annotations

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gemmlab.analysis.listing.kernel_listing import explained_listing
from gemmlab.pages.kernel_page import kernel_page
from support.chromium import Browser, executable
from support.page_kernels import explained, user_file

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
CONFLICT = (
    """[...document.querySelectorAll("button.pin")].find((one) => /bank conflicts add/.test(one.textContent)).click()"""
)


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its file, the kernels on the page, the extents of the window in pixels, and its colors."""

    name: str
    kernels: tuple[str, ...]
    """Ids of kernels; none for the user's file with the faults."""
    width: int
    height: int
    dark: bool
    then: str
    """JavaScript that is run before the picture is taken."""


SHOTS = (
    Shot("kernel_page.webp", (), 1400, 900, dark=False, then=CONFLICT),
    Shot("kernel_page-phone.webp", (), 390, 844, dark=True, then=CONFLICT),
    Shot("kernel_page-pair.webp", ("naive", "block_tile"), 1400, 700, dark=False,
         then="document.getElementById('work').scrollIntoView(); document.querySelector('#c1-97').click()"),
)  # fmt: skip


def main() -> None:
    program = executable()
    if program is None:
        sys.exit("no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, Path(folder) / "profile")
        try:
            for shot in SHOTS:
                take(browser, shot, Path(folder))
        finally:
            browser.close()


def take(browser: Browser, shot: Shot, folder: Path) -> None:
    """Make the page of a picture in `folder`, open it, and write the picture to `FOLDER`."""
    page = folder / "page.html"
    names = shot.kernels or (str(user_file(folder)),)
    page.write_bytes(kernel_page([explained_listing(explained(name)) for name in names]))
    browser.prefer("dark" if shot.dark else "light")
    browser.resize(shot.width, shot.height, phone=shot.width < 500)
    browser.open(page.as_uri())
    browser.until("document.documentElement.dataset.ready !== undefined")
    browser.run(shot.then)
    browser.run("new Promise((done) => setTimeout(done, 200))")
    found = browser.send("Page.captureScreenshot", format="webp", quality=60)["data"]
    (FOLDER / shot.name).write_bytes(base64.b64decode(found))
    print(f"{shot.name}: {len(base64.b64decode(found)):,} bytes")


if __name__ == "__main__":
    main()
