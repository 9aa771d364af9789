"""The cache under attack, while processes load, store and are killed: files are cut, changed, exchanged and planted,
folders opened and moved. Whatever is loaded is what was stored under that name, by this user.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache
from support.trials import Trials

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork, and POSIX owners")

KEYS = [letter * 64 for letter in "abcd"]
OTHER = 65534
_TRIAL_S = 0.4


def artifact(key: str, code: bytes = b"") -> Artifact:
    """What belongs under a key."""
    return Artifact("k", "object", "x86_64:8:cpu", "entry", code or key.encode() * 40, "d" * 64, "llvm 1")


def use(seed: int, _folder: Path) -> None:
    """Load and store for ever; end with 1 when something else comes than was stored."""
    rng = np.random.default_rng(seed)
    while True:
        key = KEYS[rng.integers(len(KEYS))]
        found = cache.load(key)
        if found is not None and found != artifact(key):
            os._exit(1)
        if found is None or rng.random() < 0.1:
            cache.store(key, artifact(key))


def spoil(seed: int, folder: Path) -> None:
    """The owner's own accidents: files cut, changed, exchanged and removed; the folder opened to others, and moved."""
    rng = np.random.default_rng(seed)
    while True:
        one, two = (folder / f"{KEYS[n]}.bin" for n in rng.choice(len(KEYS), 2, replace=False))
        try:
            match rng.integers(8):
                case 0:
                    os.truncate(one, int(rng.integers(200)))
                case 1:
                    with one.open("r+b") as file:
                        file.seek(int(rng.integers(400)))
                        file.write(rng.bytes(1))
                case 2:
                    one.rename(two)
                case 3:
                    one.unlink()
                case 4:
                    copy_own(one, two)
                case 5:
                    one.chmod(rng.choice([0o600, 0o666, 0o644]))
                case 6:
                    folder.chmod(0o777)
                    time.sleep(rng.random() * 0.005)
                    folder.chmod(0o700)
                case 7:
                    folder.rename(folder.with_name("away"))
                    time.sleep(rng.random() * 0.005)
                    folder.with_name("away").rename(folder)
        except OSError:
            shutil.rmtree(folder.with_name("away"), ignore_errors=True)
        time.sleep(rng.random() * 0.002)


def copy_own(one: Path, two: Path) -> None:
    """Copy a file of this user alone: a copy of another's would be this user's, and go by any name after a renaming."""
    with one.open("rb") as file:
        if os.fstat(file.fileno()).st_uid == os.getuid():
            two.write_bytes(file.read())


def plant(seed: int, folder: Path) -> None:
    """Another user, who puts code of the right form there whenever the folder is open or is not there."""
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)
    os.umask(0)
    rng = np.random.default_rng(seed)
    while True:
        key = KEYS[rng.integers(len(KEYS))]
        data, new = cache.encode(artifact(key, b"foreign"), key=key), folder / "new"
        for step in (
            partial(folder.mkdir, 0o755),
            partial(new.write_bytes, data),
            partial(new.chmod, 0o600),
            partial(new.rename, folder / f"{key}.bin"),
            partial(shutil.rmtree, folder),
        ):
            try:
                if step.func is not shutil.rmtree or folder.stat().st_uid == OTHER:
                    step()
            except OSError:
                continue


def start(action: Callable[[int, Path], None], seed: int, folder: Path) -> int:
    """A process that does this until it is killed."""
    process = os.fork()
    if process:
        return process
    warnings.simplefilter("ignore")
    try:
        action(seed, folder)
    finally:
        os._exit(2)


def end(process: int) -> int:
    """Kill it; the code that it had ended with, -9 if it had not."""
    os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.filterwarnings("ignore")
def test_whatever_happens_to_the_cache_what_is_loaded_is_what_was_stored(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rng in trials:
        place = Path(tempfile.mkdtemp())
        place.chmod(0o1777)
        folder = place / "cache"
        monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(folder))
        hostile = [spoil, plant] if os.getuid() == 0 else [spoil]
        users = [start(use, int(rng.integers(2**32)), folder) for _ in range(2)]
        others = [start(action, int(rng.integers(2**32)), folder) for action in hostile]
        try:
            over = time.monotonic() + _TRIAL_S
            while time.monotonic() < over:
                time.sleep(rng.random() * 0.05)
                index = rng.integers(len(users))
                ended = end(users[index])
                users[index] = start(use, int(rng.integers(2**32)), folder)
                assert ended == -signal.SIGKILL, "other code was loaded, or a user of the cache failed"
            ended_all = [end(process) for process in users]
            users = []
            assert ended_all == [-signal.SIGKILL] * 2
        finally:
            for process in (*users, *others):
                end(process)
            if folder.exists() and folder.stat().st_uid != os.getuid():
                shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o700)
        for key in KEYS:
            assert cache.load(key) in (None, artifact(key))
            assert cache.store(key, artifact(key))
            assert cache.load(key) == artifact(key)
        shutil.rmtree(place)
