"""The child process of `apart`: it compiles programs that it reads from its standard input, one after another.

A message is its length in eight bytes, then that many bytes. A request is a program as JSON. An answer is the letter A
and an artifact in the cache's format, or the letter E and an error as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import IO, Any

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Program
from gemmlab.toolchain import compilation
from gemmlab.toolchain.cache import encode

LENGTH_BYTES = 8
ARTIFACT, ERROR = b"A", b"E"
_TEXTS = ("kernel", "language", "target", "entry", "fingerprint", "path")


def message(program: Program) -> bytes:
    """Return a program and the working directory as a request. Raises as `Program.emit` does."""
    values: dict[str, Any] = {name: getattr(program, name) for name in _TEXTS}
    values |= {name: [*getattr(program, name)] for name in ("options", "exports")}
    values |= {name: dict(getattr(program, name)) for name in ("headers", "resources")}
    return json.dumps({"cwd": os.getcwd(), "source": program.emit(), **values}).encode()  # noqa: PTH109


def program_of(data: bytes) -> Program:
    """Return the program in a request, after changing to the working directory that the request names."""
    values = json.loads(data)
    os.chdir(values.pop("cwd"))
    source: str = values.pop("source")
    values |= {name: tuple(values[name]) for name in ("options", "exports")}
    return Program(**values, emit=lambda: source)


def answer(program: Program) -> bytes:
    """Compile a program and return the artifact or the compile error as an answer."""
    try:
        return ARTIFACT + encode(compilation.compile_cubin(program))
    except (CompileError, NoCompilerError) as error:
        return ERROR + json.dumps({"kind": type(error).__name__, "text": str(error)}).encode()


def read(stream: IO[bytes]) -> bytes | None:
    """Return the next message's bytes; `None` if the stream ends before a whole message."""
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "little")
    data = stream.read(length)
    return data if len(data) == length else None


def write(stream: IO[bytes], data: bytes) -> None:
    """Write a message with the bytes `data`, and flush the stream."""
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    stream.flush()


def main() -> None:
    """Answer requests on standard output until the input ends, or until nobody reads the answers any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Answers go to a copy of the standard output. What libraries print goes to the standard error.
    # The pipe breaks if the parent ends while this process compiles: in the write, and again when the file is closed.
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        while (data := read(sys.stdin.buffer)) is not None:
            write(answers, answer(program_of(data)))


if __name__ == "__main__":
    main()
