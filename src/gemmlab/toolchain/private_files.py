"""Read and write files that no other user can have written, in folders that no other user can replace.

Every check is made on an open descriptor, and the next name is opened relative to it, so the checked file is the one
that is read, even if names change meanwhile. On Windows, which has neither such owners nor such descriptors, nothing is
checked: the system's own protection of a user's folders must suffice.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_MOST_LINKS = 40
_USED_AGAIN_NS = 3600 * 10**9
"""Age in nanoseconds from which a file's time of last use is updated."""
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


class UntrustedError(OSError):
    """A file or folder is not used because another user may have written it; the text names the remedy."""


@contextmanager
def folder(path: Path) -> Iterator[int]:
    """Yield a descriptor of a folder that this user or root owns, and that others can neither write to nor replace.

    Raises `UntrustedError` for any other folder, and `OSError` if it cannot be opened (`FileNotFoundError` if there is
    none). On Windows yield -1 without a check.
    """
    if sys.platform == "win32":
        yield -1
        return
    at = _walk(path)
    try:
        facts = os.fstat(at)
        if not _ours(facts) or facts.st_mode & _WRITABLE:
            raise UntrustedError(f"the cache directory {path} is writable by others and is not used; chmod go-w {path}")
        yield at
    finally:
        os.close(at)


def read(path: Path) -> bytes:
    """Return the bytes of a file that only this user or root can have written; set its time of last use (`_note_use`).

    Raises `UntrustedError` for any other file, for a link, a file with a second name and anything but a plain file;
    `OSError` if the file cannot be read. On Windows nothing is checked, and no time is set.
    """
    if sys.platform == "win32":
        return path.read_bytes()
    with folder(path.parent) as at:
        try:
            file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise UntrustedError(f"{path} is a link and is not used") from error
            raise
        try:
            facts = os.fstat(file)
            # The link count is 0 if the file has been replaced since it was opened.
            if not stat.S_ISREG(facts.st_mode) or not _ours(facts) or facts.st_mode & _WRITABLE or facts.st_nlink > 1:
                raise UntrustedError(
                    f"{path} may belong to another user and is not used; remove it or, if you trust it, make it yours "
                    "alone (chown, chmod go-w)"
                )
            _note_use(file, facts)
            with os.fdopen(file, "rb", closefd=False) as stream:
                return stream.read()
        finally:
            os.close(file)


def _note_use(file: int, facts: os.stat_result) -> None:
    """Set the access time of an open file, unless it was set in the last hour. Pruning of the cache depends on it.

    Many file systems do not set it themselves.
    """
    now = time.time_ns()
    if now - facts.st_atime_ns > _USED_AGAIN_NS:
        with suppress(OSError):
            os.utime(file, ns=(now, facts.st_mtime_ns))


def publish(path: Path, data: bytes) -> None:
    """Write a file that only this user can read, under a temporary name, and rename it. Raises as `folder` does.

    On Windows the file has the permissions of its folder, and nothing is checked.
    """
    temporary = f".new-{os.urandom(8).hex()}"
    if sys.platform == "win32":
        _publish(path, path.with_name(temporary), data)
        return
    with folder(path.parent) as at:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            os.replace(temporary, path.name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=at)
            raise


def remove(path: Path) -> None:
    """Remove a file, and ignore errors: it stays if `folder` does not trust its folder."""
    with suppress(OSError):
        if sys.platform == "win32":
            path.unlink()
            return
        with folder(path.parent) as at:
            os.unlink(path.name, dir_fd=at)


def check_tree(path: Path) -> None:
    """Raise `UntrustedError` if other users can have written anything below a folder, or can replace it.

    On Windows nothing is checked.
    """
    if sys.platform == "win32":
        return
    with folder(path) as at:
        for _place, _folders, files, inside in os.fwalk(dir_fd=at):
            facts = [os.fstat(inside), *(os.stat(name, dir_fd=inside, follow_symlinks=False) for name in files)]
            if not all(_ours(each) and not each.st_mode & _WRITABLE for each in facts):
                raise UntrustedError(f"{path} may contain another user's files and is not used; remove it")


def _publish(path: Path, temporary: Path, data: bytes) -> None:
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _walk(path: Path) -> int:
    """Return a descriptor of a folder after a check of each folder and link on the way.

    Raises `UntrustedError` if another user can replace one of them.
    """
    pending = [*reversed(Path(os.path.abspath(path)).parts[1:])]  # noqa: PTH100 - links are followed below
    at = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    links = 0
    try:
        while pending:
            _check_way(at, path)
            name = pending.pop()
            try:
                inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            except OSError as error:
                target = _target(at, name, error)
                links += 1
                if links > _MOST_LINKS or not _ours(os.stat(name, dir_fd=at, follow_symlinks=False)):
                    raise UntrustedError(f"{path} is reached by another user's link and is not used") from error
                pending += reversed([part for part in target.split("/") if part])
                if not target.startswith("/"):
                    continue
                inside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
            os.close(at)
            at = inside
    except BaseException:
        os.close(at)
        raise
    return at


def _target(at: int, name: str, error: OSError) -> str:
    """Return the target of a link. If it is not a link, raise `error`, the error of opening it as a folder."""
    try:
        return os.readlink(name, dir_fd=at)
    except OSError:
        raise error from None


def _check_way(at: int, path: Path) -> None:
    """Raise `UntrustedError` if other users can replace folders in the open folder `at`. In a sticky folder they
    cannot.

    `path` is the whole path, for the message.
    """
    facts = os.fstat(at)
    writable = 0 if facts.st_mode & stat.S_ISVTX else facts.st_mode & _WRITABLE
    by_group_alone = writable == stat.S_IWGRP and _own_group(facts.st_gid)
    if not _ours(facts) or (writable and not by_group_alone):
        raise UntrustedError(f"{path} lies in a folder that others can write to and is not used; chmod go-w that")


def _ours(facts: os.stat_result) -> bool:
    return facts.st_uid in (0, os.getuid())


@cache
def _own_group(number: int) -> bool:
    """Return whether a group has only this user. Many systems give each user such a group, which may write to
    folders.
    """
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
