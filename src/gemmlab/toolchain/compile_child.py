"""`python -m gemmlab.toolchain.compile_child`: compiles programs that it reads from its input, one after another.

Each message is its length in eight bytes, then that many bytes: a program as JSON; the answer is an artifact in the
cache's format, or an error as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, Any

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Program
from gemmlab.toolchain import compilation
from gemmlab.toolchain.cache import encode

LENGTH_BYTES = 8
ARTIFACT, ERROR = b"A", b"E"
_TEXTS = ("kernel", "language", "target", "entry", "fingerprint", "path")


def message(program: Program) -> bytes:
    """Return a program as a message. Raises as `Program.emit` does."""
    values: dict[str, Any] = {name: getattr(program, name) for name in _TEXTS}
    values |= {name: [*getattr(program, name)] for name in ("options", "exports")}
    values |= {name: dict(getattr(program, name)) for name in ("headers", "resources")}
    return json.dumps({"cwd": os.getcwd(), "source": program.emit(), **values}).encode()  # noqa: PTH109


def program_of(data: bytes) -> Program:
    """Inverse of `message`; also changes to the working directory that the message names."""
    values = json.loads(data)
    os.chdir(values.pop("cwd"))
    source: str = values.pop("source")
    values |= {name: tuple(values[name]) for name in ("options", "exports")}
    return Program(**values, emit=lambda: source)


def answer(program: Program) -> bytes:
    """Compile a program and return the artifact or the error as a message."""
    try:
        return ARTIFACT + encode(compilation.compile_cubin(program))
    except (CompileError, NoCompilerError) as error:
        return ERROR + json.dumps({"kind": type(error).__name__, "text": str(error)}).encode()


def read(stream: IO[bytes]) -> bytes | None:
    """Return the next message; `None` at the end of the stream."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "little")
    data = stream.read(length)
    return data if len(data) == length else None


def write(stream: IO[bytes], data: bytes) -> None:
    """Write a message."""
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    stream.flush()


def main() -> None:
    """Answer messages until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Output of libraries goes to standard error.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        while (data := read(sys.stdin.buffer)) is not None:
            write(answers, answer(program_of(data)))


if __name__ == "__main__":
    main()
