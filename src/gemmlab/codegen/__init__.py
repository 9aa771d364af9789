from __future__ import annotations

from pathlib import Path

from gemmlab.core.sources import Sources

GENERATOR = Sources(Path(__file__).parent.glob("*.py"))
"""The code generator's own files, noted before any of them is imported."""
