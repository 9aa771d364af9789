"""Every exception gemmlab raises on purpose, each with the exit code the command line gives it.

Exit codes: 0 fine, 1 wrong result or regression, 2 usage, 3 no such device.
"""

from __future__ import annotations

from collections.abc import Mapping


class GemmlabError(Exception):
    """Base of all errors raised on purpose; `exit_code` is the exit code of the command line."""

    exit_code = 2


class UsageError(GemmlabError, ValueError):
    """A request that cannot be served as written: unknown kernel, malformed size, bad option."""


class ArgumentTypeError(UsageError, TypeError):
    """An operand of the wrong kind or dtype. Also a `TypeError`, as NumPy users expect."""


class WrongResultError(GemmlabError):
    """A kernel computed something outside its bound, or a measured regression was confirmed."""

    exit_code = 1


class TimeLimitError(GemmlabError):
    """A limit in seconds was reached. The message states the progress. `progress` has it as numbers if the device
    reports them: `blocks_finished` of `blocks`, and `instructions` executed by warps, of a launch.
    """

    exit_code = 1

    def __init__(self, message: str, progress: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.progress: Mapping[str, int] = dict(progress or {})


class DeviceError(GemmlabError):
    """The requested device does not exist here, or lacks a feature that the kernel needs."""

    exit_code = 3


class CompileError(GemmlabError):
    """A kernel did not compile; the message names the kernel and its configuration."""


class NoCompilerError(CompileError):
    """A compiler is not installed, or does not match the other installed packages; the message names the package to
    install.
    """


class PeerError(GemmlabError):
    """A library to compare with could not be loaded or died; the message names it."""


class ProfilerError(GemmlabError):
    """Nsight Compute is not installed here, or lacks the permission to count; the message names the remedy."""


class RecordError(GemmlabError):
    """A record file that is unreadable, malformed or of a schema this version does not know."""
