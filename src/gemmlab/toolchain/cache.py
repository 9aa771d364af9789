"""A content-addressed store of compiled code on disk.

Each artifact is one file: a magic line, the SHA-256 of the rest, a length, JSON facts, the code and compressed texts.
Files are written under a temporary name and renamed, so that a reader sees a whole file or none. A file that does not
match its checksum or its name is removed and made again. Files and folders that others could have written are not
trusted (see `private_files`). If the cache is full, the least recently used files are removed (`cache_bound`). If
nothing can be stored, the caller continues without a cache, after one warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from gemmlab.core.late_texts import ready_texts
from gemmlab.core.program import Artifact
from gemmlab.core.warning import warn_caller
from gemmlab.toolchain import cache_bound, private_files

MAGIC = b"gemmlab artifact 1\n"
_LENGTH_BYTES = 8


def cache_dir() -> Path | None:
    """Return the folder that `GEMMLAB_CACHE_DIR` names, else the user's cache folder. The folder may not exist.

    `None` if its path depends on the user's home, which is unknown.
    """
    named = os.environ.get("GEMMLAB_CACHE_DIR")
    try:
        if named:
            return Path(named).expanduser()
        from platformdirs import user_cache_path

        found = user_cache_path("gemmlab", appauthor=False)
    except RuntimeError:
        return None
    # If the home is unknown, `expanduser` may leave `~` as it is.
    return found if found.is_absolute() else None


def key_of(*parts: str) -> str:
    """Return the key that these parts determine: SHA-256 over them, each with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def encode(artifact: Artifact, level: int = -1, key: str = "") -> bytes:
    """Return an artifact as the bytes of a file, without texts that are still to be made (`LateTexts`). `level` is
    zlib's compression level for the texts.

    The file contains `key`, under which it is stored, so that a renamed file is not taken for other code.
    """
    facts = {**asdict(replace(artifact, texts={})), "key": key}
    code: bytes = facts.pop("code")
    del facts["texts"]
    texts = ready_texts(artifact.texts)
    packed = zlib.compress(json.dumps(texts, sort_keys=True).encode(), level) if texts else b""
    facts["packed_bytes"] = len(packed)
    header = json.dumps(facts, sort_keys=True).encode()
    body = len(header).to_bytes(_LENGTH_BYTES, "little") + header + code + packed
    return MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes, key: str | None = None) -> Artifact:
    """Return the artifact in the bytes of `encode`. `key`, if it is given, must be the one in the bytes.

    Raises `ValueError` for another key, and for bytes that are damaged or no artifact; `KeyError` or `TypeError` for an
    artifact with other facts, from another version of gemmlab.
    """
    checked = len(MAGIC) + 32
    digest, body = data[len(MAGIC) : checked], data[checked:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise ValueError("not a gemmlab artifact, or damaged")
    length = int.from_bytes(body[:_LENGTH_BYTES], "little")
    facts = json.loads(body[_LENGTH_BYTES : _LENGTH_BYTES + length])
    facts["exports"] = tuple(facts["exports"])
    if facts.pop("key") != key is not None:
        raise ValueError("a gemmlab artifact of another name")
    end = len(body) - facts.pop("packed_bytes", 0)
    if end < len(body):
        facts["texts"] = json.loads(zlib.decompress(body[end:]))
    return Artifact(**facts, code=body[_LENGTH_BYTES + length : end])


def load(key: str) -> Artifact | None:
    """Return the artifact that the cache has under `key`; `None` if there is none that can be trusted.

    A file that is damaged or from another version is removed.
    """
    name = f"{key}.bin"
    data = read(name)
    if data is None:
        return None
    try:
        return decode(data, key)
    except (ValueError, KeyError, TypeError):
        # Damaged or from another version: make it again rather than fail.
        directory = cache_dir()
        if directory is not None:
            private_files.remove(directory / name)
        return None


def store(key: str, artifact: Artifact) -> bool:
    """Store an artifact in the cache under `key`; return whether that was possible."""
    return publish(f"{key}.bin", encode(artifact, key=key))


def private_folder(name: str) -> Path | None:
    """Return the folder `name` in the cache, created if necessary; `None` if it cannot be trusted or written to."""
    directory = _prepared()
    if directory is None:
        return None
    folder = directory / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with private_files.folder(folder):
            pass
    except OSError as error:
        _warn_uncached(directory, error)
        return None
    return folder if os.access(folder, os.W_OK) else None


def read(name: str) -> bytes | None:
    """Return the bytes of the cache's file `name`; `None` if there is none that can be trusted."""
    directory = _directory()
    if directory is None:
        return None
    try:
        return private_files.read(directory / name)
    except private_files.UntrustedError as error:
        _warn(str(error))
    except OSError:
        pass
    return None


def publish(name: str, data: bytes) -> bool:
    """Write the cache's file `name` under a temporary name and rename it; return whether that was possible.

    A failure leads to a warning. Other files may be removed to keep the cache within its bound.
    """
    directory = _prepared()
    if directory is None:
        return False
    try:
        private_files.publish(directory / name, data)
        cache_bound.added(directory, len(data))
    except OSError as error:
        if isinstance(error, PermissionError) and sys.platform == "win32" and (directory / name).exists():
            # Windows does not replace a file that is being read. The existing file has the same key, so it is kept.
            return True
        _warn_uncached(directory, error)
        return False
    return True


def _directory() -> Path | None:
    """Return the cache's folder, existing or not; `None`, with a warning, if there is no home for it."""
    directory = cache_dir()
    if directory is None:
        _warn("compiled kernels cannot be cached: there is no home; set HOME or GEMMLAB_CACHE_DIR; continuing without")
    return directory


def _prepared() -> Path | None:
    """Return the cache's folder, created if necessary; `None`, with a warning, if that is impossible."""
    directory = _directory()
    try:
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _warn_uncached(directory, error)
        return None
    return directory


def _warn_uncached(directory: Path | None, error: OSError) -> None:
    if isinstance(error, private_files.UntrustedError):
        _warn(str(error))
        return
    _warn(f"compiled kernels cannot be cached in {directory} ({error.strerror or error}); continuing without")


@cache
def _warn(message: str) -> None:
    warn_caller(message)
