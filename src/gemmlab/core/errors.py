"""The base class of gemmlab's errors, and the errors that several packages raise, with the command line's exit codes.

Exit codes: 0 fine; 1 wrong result, regression or time limit; 3 no such device, or one that lacks what the kernel needs;
2 for all other errors. Modules with errors of their own derive them from these.
"""

from __future__ import annotations

from collections.abc import Mapping


class GemmlabError(Exception):
    """Base of all errors raised on purpose; `exit_code` is the exit code of the command line."""

    exit_code = 2


class UsageError(GemmlabError, ValueError):
    """A request that cannot be served as written: unknown kernel, malformed size, bad option. Also a `ValueError`."""


class ArgumentTypeError(UsageError, TypeError):
    """An operand of the wrong kind or dtype. Also a `TypeError`, as NumPy users expect."""


class WrongResultError(GemmlabError):
    """A kernel computed something outside its bound, or a measured regression was confirmed."""

    exit_code = 1


class TimeLimitError(GemmlabError):
    """A limit in seconds was reached. The message states the progress.

    `progress` has the progress of a launch as numbers, if the device reports it: `blocks_finished`, `blocks` (all of
    them), and `instructions` executed by warps.
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
    """A compiler is not installed, or its version does not match other packages; the message says what to install."""


class PeerError(GemmlabError):
    """A library that kernels are compared with could not be loaded, or its process died; the message names it."""


class ProfilerError(GemmlabError):
    """Nsight Compute is not installed here, or may not read the GPU's counters; the message names the remedy."""


class RecordError(GemmlabError):
    """A record file that cannot be read or written, is malformed, or has a schema that this version does not know."""
