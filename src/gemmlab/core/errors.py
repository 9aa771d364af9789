"""The base class of gemmlab's errors, and the errors that several packages raise, with the command line's exit codes.

Exit codes: 0 fine; 1 wrong result, regression or time limit; 3 a device that does not exist here, fails, or does not
fit the request; 2 for all other errors. Modules with errors of their own derive them from these.
"""

from __future__ import annotations

from collections.abc import Mapping


class GemmlabError(Exception):
    """Base of all errors raised on purpose; `exit_code` is the exit code of the command line."""

    exit_code = 2


class UsageError(GemmlabError, ValueError):
    """A request that cannot be served as written: unknown kernel, malformed size, bad option. Also a `ValueError`."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument of the wrong type, such as an operand of another dtype. Also a `TypeError`, as NumPy users expect."""


class WrongResultError(GemmlabError):
    """A kernel computed wrong results or made an error that the emulator reports, or a regression was confirmed."""

    exit_code = 1


class TimeLimitError(GemmlabError):
    """A limit in seconds was reached. The message states the progress.

    `progress` has the progress of a launch as numbers, as far as the device reports it: `blocks_finished`, `blocks`
    (all of them), and `instructions` executed by warps.
    """

    exit_code = 1

    def __init__(self, message: str, progress: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.progress: Mapping[str, int] = dict(progress or {})


class DeviceError(GemmlabError):
    """A device does not exist here, fails, or does not fit the request: it lacks a feature, or arrays lie elsewhere."""

    exit_code = 3


class CompileError(GemmlabError):
    """A kernel did not compile, or its source could not be made; the message names the kernel."""


class NoCompilerError(CompileError):
    """A compiler or disassembler is not installed, does not load, or its version does not match other packages."""


class PeerError(GemmlabError):
    """A library that kernels are compared with, or a program that measures, is not installed, cannot start or fails."""


class ProfilerError(GemmlabError):
    """Nsight Compute is not installed here, cannot be started, or may not read the GPU's counters."""


class RecordError(GemmlabError):
    """A record, journal or other file of results cannot be read or written, is malformed, or has another schema."""
