"""A content-addressed store of compiled code on disk.

One file an artifact: a magic line, the SHA-256 of the rest, a length, JSON facts, the code and packed texts. Files
are written beside their place and renamed into it, so that a reader sees a whole file or none; one that does not
match its checksum is removed and made again. A directory that others could write to is not trusted, and where
nothing can be stored the caller goes on without, after one warning. An alias is a file that holds another's key.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import zlib
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from gemmlab.core.program import Artifact
from gemmlab.core.warning import warn_caller

MAGIC = b"gemmlab artifact 1\n"
_LENGTH_BYTES = 8
_KEY = re.compile(r"[0-9a-f]{64}")


def cache_dir() -> Path:
    """`GEMMLAB_CACHE_DIR`, or the user's cache directory."""
    named = os.environ.get("GEMMLAB_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("gemmlab", appauthor=False)


def key_of(*parts: str) -> str:
    """The name of what these parts determine: SHA-256 over them, each with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def encode(artifact: Artifact, level: int = -1) -> bytes:
    """An artifact as the bytes of its file; `level` is zlib's for the texts, 0 where all of it is compressed later."""
    facts = asdict(artifact)
    code: bytes = facts.pop("code")
    texts = facts.pop("texts")
    packed = zlib.compress(json.dumps(texts, sort_keys=True).encode(), level) if texts else b""
    facts["packed_bytes"] = len(packed)
    header = json.dumps(facts, sort_keys=True).encode()
    body = len(header).to_bytes(_LENGTH_BYTES, "little") + header + code + packed
    return MAGIC + hashlib.sha256(body).digest() + body


def decode(data: bytes) -> Artifact:
    """Inverse of `encode`; `ValueError` when the bytes are not a whole artifact."""
    checked = len(MAGIC) + 32
    digest, body = data[len(MAGIC) : checked], data[checked:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise ValueError("not a gemmlab artifact, or damaged")
    length = int.from_bytes(body[:_LENGTH_BYTES], "little")
    facts = json.loads(body[_LENGTH_BYTES : _LENGTH_BYTES + length])
    facts["exports"] = tuple(facts["exports"])
    end = len(body) - facts.pop("packed_bytes", 0)
    if end < len(body):
        facts["texts"] = json.loads(zlib.decompress(body[end:]))
    return Artifact(**facts, code=body[_LENGTH_BYTES + length : end])


def load(key: str) -> Artifact | None:
    """The artifact stored under `key`; `None` when there is none that can be trusted."""
    path = cache_dir() / f"{key}.bin"
    if not _trusted(path.parent):
        return None
    try:
        return decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        # Damaged or from another version: make it again rather than fail.
        with suppress(OSError):
            path.unlink()
        return None


def store(key: str, artifact: Artifact) -> bool:
    """Keep an artifact; whether that was possible."""
    return _publish(f"{key}.bin", encode(artifact))


def point(alias: str, key: str) -> bool:
    """Let `alias` lead to `key` from now on; whether that was possible."""
    return _publish(f"{alias}.ref", key.encode())


def follow(alias: str) -> Artifact | None:
    """What is stored under the key that `alias` leads to; `None` when there is none that can be trusted."""
    path = cache_dir() / f"{alias}.ref"
    if not _trusted(path.parent):
        return None
    try:
        key = path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    return load(key) if _KEY.fullmatch(key) else None


def private_folder(name: str) -> Path | None:
    """A folder of that name in the cache, made if need be; `None` where nothing can be kept."""
    directory = cache_dir()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _trusted(directory):
            return None
        (directory / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        _warn_unkept(directory, error)
        return None
    return directory / name if os.access(directory / name, os.W_OK) else None


def _publish(name: str, data: bytes) -> bool:
    """Write a file beside its place and rename it into it; whether that was possible."""
    directory = cache_dir()
    temporary: Path | None = None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _trusted(directory):
            return False
        handle, new = tempfile.mkstemp(prefix=".new-", dir=directory)
        temporary = Path(new)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(directory / name)
    except OSError as error:
        if isinstance(error, PermissionError) and sys.platform == "win32" and (directory / name).exists():
            # Windows does not replace a file that is being read. What is there is as good: its name says so.
            return True
        _warn_unkept(directory, error)
        return False
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    return True


def _trusted(directory: Path) -> bool:
    """Whether only this user can have put files there (checked where the system has owners)."""
    if sys.platform == "win32":
        return True
    try:
        facts = directory.stat()
    except OSError:
        return True
    if facts.st_uid == os.getuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    _warn(f"the cache directory {directory} is writable by others and is not used; chmod go-w {directory}")
    return False


def _warn_unkept(directory: Path, error: OSError) -> None:
    _warn(f"compiled kernels cannot be kept in {directory} ({error.strerror or error}); going on without")


@cache
def _warn(message: str) -> None:
    warn_caller(message)
