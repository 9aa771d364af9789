"""The journal of a large product: a list of the pieces in the result, from which an interrupted run continues.

A file of JSON lines: first the binding (the facts that identify the product) with digests of the operands, then a line
for each piece, written after the piece is flushed. A line that the end of the process has cut off is ignored. All
digests are of all elements: they detect any change of an operand, or of a complete piece, before the run goes on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from gemmlab.core.errors import RecordError, UsageError

_NAME = "gemmlab.pieces/"
SCHEMA = f"{_NAME}2"
"""Its number grows when the meaning of a journal changes. Schema 1 had digests of samples, which miss other changes."""
Place = tuple[int, int]


class Checkpoint:
    """An open journal. Except on Windows it is locked: no other process can open it as a `Checkpoint`."""

    def __init__(self, path: Path, binding: Mapping[str, Any]) -> None:
        """Open the journal at `path`, or make a new one.

        Raises `RecordError` for a file that is no journal, `UsageError` for the journal of another product or with
        another schema and, except on Windows, for one that another process has open.
        """
        self.path, self.binding = path, json.loads(json.dumps(binding))
        self.extents: tuple[int, int] | None = None
        """Rows and columns of the pieces of the run that is resumed; `None` for a new one."""
        self.contents: dict[str, str] = {}
        """Name of each operand that is read -> its digest when the run that is resumed began."""
        self.digests: dict[Place, str] = {}
        """Place of each complete piece -> its digest."""
        self._file: IO[bytes] = path.open("a+b")
        try:
            _lock(self._file, path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def begin(self, rows: int, cols: int, contents: Mapping[str, str]) -> None:
        """Write the binding of a new run, the extents of its pieces, and the digests of its operands."""
        self._append(
            {"schema": SCHEMA, "rows": rows, "cols": cols, "binding": self.binding, "contents": dict(contents)}
        )
        if sys.platform != "win32":
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def require(self, contents: Mapping[str, str]) -> None:
        """Raise `UsageError` unless the operands with these digests are those with which the run began."""
        for name, found in contents.items():
            if self.contents.get(name) != found:
                place = self.binding[name].get("file") or self.binding[name].get("store")
                raise UsageError(
                    f"gemm: {name}{f' ({place})' if place else ''} holds other numbers than when this "
                    f"checkpoint was begun; remove {self.path} to begin anew"
                )

    def complete(self, place: Place, digest: str) -> None:
        """Write that the piece at `place` is in the result, with its digest.

        The result must have been flushed before.
        """
        self.digests[place] = digest
        self._append({"piece": list(place), "digest": digest})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
            if not lines and not content:
                return
            if not lines and self._cut_off(content):
                self._file.truncate(0)
                return
            head = self._checked_head(lines[0])
            found = head["binding"]
            self.contents = {str(name): str(digest) for name, digest in head["contents"].items()}
            self.extents = int(head["rows"]), int(head["cols"])
            self.digests = {(int(line["piece"][0]), int(line["piece"][1])): str(line["digest"]) for line in lines[1:]}
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise RecordError(
                f"gemm: {self.path} is no checkpoint of a product; name another file, or remove it"
            ) from error
        differing = [name for name in {**found, **self.binding} if found.get(name) != self.binding.get(name)]
        if differing:
            what = "; ".join(_difference(name, found.get(name), self.binding.get(name)) for name in differing)
            raise UsageError(f"gemm: {self.path} is the checkpoint of another product: {what}; remove it to begin anew")
        # A new line must follow a whole line.
        self._file.truncate(len(whole))

    @staticmethod
    def _cut_off(content: bytes) -> bool:
        """Return whether `content`, which has no line end, is the beginning of a journal's first line.

        If it is, the process that wrote it ended before the line was whole.
        """
        begin = json.dumps({"schema": SCHEMA}).encode()[:-1]
        return content.startswith(begin) or begin.startswith(content)

    def _checked_head(self, line: Any) -> Any:
        schema = str(line["schema"])
        if schema == SCHEMA:
            return line
        if not schema.startswith(_NAME):
            raise ValueError(f"its schema is {schema!r}, not {SCHEMA!r}")
        raise UsageError(
            f"gemm: {self.path} is the checkpoint of another version of gemmlab: its schema is {schema}, this version "
            f"reads {SCHEMA}; complete the product with that version, or remove {self.path} to begin anew"
        )


def _lock(file: IO[bytes], path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"gemm: another process runs this product ({path}); wait for it, or end it") from error


def _difference(name: str, before: Any, now: Any) -> str:
    """Return the difference of two values of a binding in words; for an array, which facts of its identity differ."""
    if not (isinstance(before, dict) and isinstance(now, dict) and "shape" in before and "shape" in now):
        return f"{name} was {before}, is {now}"
    differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(f"{key} of {name} was {before.get(key)}, is {now.get(key)}" for key in differing)
