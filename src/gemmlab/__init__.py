"""gemmlab: climb from a naive matrix multiplication to the hardware's limit, then use the result."""

from __future__ import annotations

__version__ = "0.1.0"
