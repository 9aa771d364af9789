from __future__ import annotations

from pathlib import Path

from gemmlab.core.sources import Sources

_PACKAGE = Path(__file__).parents[1]
GENERATOR = Sources(path for room in ("ir", "codegen", "probes") for path in (_PACKAGE / room).rglob("*.py"))
"""All files that determine the generated CPU code. They are recorded here, before any of them is imported."""
