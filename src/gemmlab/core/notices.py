"""Remarks beside an answer, as log messages: silent unless a program or the command line shows them."""

from __future__ import annotations

import logging

LOGGER = "gemmlab"


def notice(text: str) -> None:
    """Log a remark, at level INFO."""
    logging.getLogger(LOGGER).info("%s", text)
