"""The launch of a kernel with a bug, or of its right twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmlab import launch
from gemmlab.core.hazard import Hazard


@dataclass(frozen=True, slots=True)
class BuggyLaunch:
    """A launch by keywords of `gemmlab.launch`."""

    name: str
    bug: bool
    """True for the kernel with the bug, False for its twin without."""
    keywords: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name} {'bug' if self.bug else 'right'}"

    def run(self, device: str, **more: Any) -> tuple[Hazard, ...] | None:
        """Launch it; return the hazards that the device names."""
        return launch(**self.keywords, device=device, **more).hazards
