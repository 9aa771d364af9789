"""Changes of the store of `gemmlab tune --library`: entries are merged under a lock, written whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gemmlab.core.data_folder import require_data_dir
from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.files import replace_file
from gemmlab.dispatch.choice_store import FILE_NAME, Entry, machine_of_cpu, objection, read_store, store_path, to_json
from gemmlab.kernels.catalog import find_kernel
from gemmlab.toolchain import private_files

Entries = dict[tuple[str, ...], Entry]


def stored() -> Entries:
    """Return all entries of this user's store, by `Entry.key`. Raises `RecordError` as `read_store` does."""
    path = store_path()
    return {} if path is None else read_store(path)


def require_store() -> None:
    """Raise `UsageError` if nothing can be stored, and `RecordError` for a damaged store."""
    with _locked() as path:
        read_store(path)


def add(entries: Iterable[Entry]) -> None:
    """Merge entries into the store. Of two entries with the same key, the one that was measured later stays.

    Raises `UsageError` if the file cannot be written, and `RecordError` for a damaged store, which is not changed.
    """
    with _locked() as path:
        merged = _merged(read_store(path), entries)
        _publish(path, merged)


def forget(machine: str) -> int:
    """Delete the entries of a machine from the store; return how many there were. Raises as `add` does."""
    with _locked() as path:
        before = read_store(path)
        after = {key: entry for key, entry in before.items() if entry.machine != machine}
        if len(after) < len(before):
            _publish(path, after)
    return len(before) - len(after)


def export(target: Path) -> int:
    """Write the store to a file; return the number of entries.

    Raises `RecordError` if the store cannot be read or the file cannot be written.
    """
    entries = stored()
    try:
        replace_file(target, _text(entries))
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror or error}") from error
    return len(entries)


def import_file(source: Path) -> tuple[int, list[str]]:
    """Merge the entries of a file that `export` wrote into the store.

    Returns the number of merged entries, and a line of text for each that was left out: its kernel has changed. Raises
    `RecordError` for a file that is missing, damaged or of another schema, to which other users can write, or with an
    entry that the header of its kernel does not allow; then nothing is merged. Otherwise raises as `add` does.
    """
    if not source.is_file():
        raise RecordError(f"no file {source}")
    fresh, older = list[Entry](), list[str]()
    for entry in read_store(source.absolute()).values():
        if why := _illegal(entry):
            raise RecordError(f"{source}: the entry for {entry.product or 'every product'} on {entry.machine}: {why}")
        if why := "" if _of_another_processor(entry) else objection(entry):
            older.append(f"{entry.product or 'every product'} on {entry.machine}: {why}")
        else:
            fresh.append(entry)
    add(fresh)
    return len(fresh), older


def _illegal(entry: Entry) -> str:
    """Return the reason why the kernel's header does not allow an entry; empty if it does.

    The digest of the source is not compared. For another processor, only the names of parameters are checked.
    """
    try:
        kernel = find_kernel(entry.kernel)
        if _of_another_processor(entry):
            unknown = sorted(entry.config.keys() - kernel.params.keys())
            return f"{kernel.id}: unknown parameter {unknown[0]}" if unknown else ""
        kernel.configure(entry.config)
    except UsageError as error:
        return str(error)
    family = "cpu" if entry.machine.startswith("cpu:") else "cuda"
    fits = kernel.op == entry.op and kernel.device == family
    return "" if fits else f"{kernel.id} is a kernel for {kernel.op} on {kernel.device}"


def _of_another_processor(entry: Entry) -> bool:
    """Return whether an entry is for another processor than this one: its configuration can be checked only there."""
    return entry.machine.startswith("cpu:") and entry.machine != machine_of_cpu()


def _merged(before: Entries, entries: Iterable[Entry]) -> Entries:
    merged = dict(before)
    for entry in entries:
        if entry.key not in merged or merged[entry.key].taken <= entry.taken:
            merged[entry.key] = entry
    return merged


@contextmanager
def _locked() -> Iterator[Path]:
    """Yield the store's path while no other process changes the store; wait for one that does.

    Raises `UsageError` if this user cannot write to the folder.
    """
    folder = require_data_dir()
    try:
        lock = (folder / f"{FILE_NAME}.lock").open("a+b")
    except OSError as error:
        raise UsageError(f"choices cannot be stored in {folder}: {error.strerror or error}") from error
    with lock as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield folder / FILE_NAME


def _publish(path: Path, entries: Mapping[tuple[str, ...], Entry]) -> None:
    try:
        private_files.publish(path, _text(entries))
    except OSError as error:
        raise UsageError(f"choices cannot be stored in {path}: {error.strerror or error}") from error


def _text(entries: Mapping[tuple[str, ...], Entry]) -> bytes:
    return json.dumps(to_json(entries), indent=1).encode()
