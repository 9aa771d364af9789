"""Shared libraries whose functions return a status, 0 for success: cuBLAS and cublasLt."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gemmlab.core.errors import PeerError


class StatusLibrary:
    """The shared library at `path`, loaded into this process. Raises `PeerError` if it does not load."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).name
        try:
            self.functions = ctypes.CDLL(path)
        except OSError as error:
            raise PeerError(f"{self.file} does not load: {error}") from error

    def check(self, function: str, *arguments: Any) -> None:
        """Call a function. Raises `PeerError`, with the function and its status, if the status is not 0."""
        status = getattr(self.functions, function)(*arguments)
        if status:
            raise PeerError(f"{self.file}: {function} ended with status {status}")

    def repeated(self, function: str, *arguments: Any) -> Callable[[], None]:
        """Return a callable that does what `check` does, with little overhead for being timed."""
        entry = getattr(self.functions, function)

        def call() -> None:
            status = entry(*arguments)
            if status:
                raise PeerError(f"{function} ended with status {status}")

        return call
