"""Remarks that accompany a result, as log messages: silent unless a program or the command line shows them."""

from __future__ import annotations

import logging

LOGGER = "gemmlab"


def notice(text: str) -> None:
    """Log a remark at level INFO to the logger `gemmlab`."""
    logging.getLogger(LOGGER).info("%s", text)
