"""An interrupted product goes on from what is complete, also after the process was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import RecordError, UsageError
from support.resumed_pieces import M, N, begin, lines, resume
from support.stores import Hdf5Store, MemoryStore

PIECES = 24
needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
CHILD = """
import os, signal, sys
import numpy as np
import gemmlab
from gemmlab.pieces.checkpoint import Checkpoint

folder, how, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
files = {name: np.memmap(f"{folder}/{name}", np.float32, mode, shape=shape)
         for name, mode, shape in (("a", "r", (500, 300)), ("b", "r", (300, 400)), ("out", "r+", (500, 400)))}
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
complete, written = Checkpoint.complete, Checkpoint._append

def before(self, place, digest):
    if len(self.digests) == at:
        if how == "before the line":
            kill()
        if how == "within the line":
            self._file.write(b'{"piece": [0')
            self._file.flush()
            kill()
    complete(self, place, digest)

def header(self, line):
    if how == "within the first line" and "schema" in line:
        self._file.write(b'{"schema": "gemmlab.pie')
        self._file.flush()
        kill()
    written(self, line)

Checkpoint.complete, Checkpoint._append = before, header
seen = []
def progress(done, count):
    seen.append(done)
    if how == "between pieces" and done == at:
        kill()
gemmlab.gemm(**files, memory_bytes=700_000, checkpoint=f"{folder}/journal", progress=progress)
print(seen[0], seen[-1])
"""


def run(folder: Path, how: str, at: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), how, str(at)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.in_turns(20)
@needs_kill
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("how", "at"), [("before the line", 3), ("within the line", 4), ("within the first line", 0), ("between pieces", 5)]
)
def test_a_killed_process_is_resumed(files: dict[str, Any], tmp_path: Path, how: str, at: int) -> None:
    killed = run(tmp_path, how, at)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    complete = len(lines(tmp_path)[1:])
    assert complete >= at
    assert complete < PIECES
    done = run(tmp_path, "")
    assert (done.returncode, done.stdout.split()) == (0, [str(complete), str(PIECES)]), done.stderr
    expected = gemmlab.gemm(np.asarray(files["a"]), np.asarray(files["b"]))
    assert np.array_equal(files["out"].view(np.uint32), expected.view(np.uint32))
    assert len(lines(tmp_path)) == 1 + PIECES
    again = run(tmp_path, "")
    assert (again.returncode, again.stdout.split()) == (0, [str(PIECES)] * 2)


def test_pieces_that_are_complete_are_not_computed_again(files: dict[str, Any], tmp_path: Path) -> None:
    begin(files, tmp_path, c=files["c"], beta=0.5, alpha=2.0)
    place = lines(tmp_path)[1]["piece"]
    seen: list[int] = []
    # The pieces are those of the first run, whatever this one allows.
    resume(
        files, tmp_path, c=files["c"], beta=0.5, alpha=2.0, memory_bytes=1 << 30,
        progress=lambda done, _count: seen.append(done),
    )  # fmt: skip
    assert place == [0, 0]
    assert 3 <= seen[0] < PIECES == seen[-1]
    expected = gemmlab.gemm(*(np.asarray(files[name]) for name in "ab"), c=np.asarray(files["c"]), beta=0.5, alpha=2.0)
    assert np.array_equal(files["out"].view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    "content", [b"a text\n", b'{"schema": "other/1"}\n', b"[1]\n", b"\x00\xff", b'{"schema": "gemmlab.pieces/2"}\nx\n']
)
def test_what_is_no_checkpoint_is_left_as_it_is(files: dict[str, Any], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)
    with pytest.raises(RecordError, match=r"is no checkpoint of a product; name another file, or remove it$"):
        resume(files, tmp_path)
    assert (tmp_path / "journal").read_bytes() == content
    assert np.isnan(files["out"]).all()


def test_one_process_at_a_time(files: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    def again(done: int, _count: int) -> None:
        if done == 1:
            resume(files, tmp_path)

    with pytest.raises(UsageError, match="another process runs this product"):
        resume(files, tmp_path, progress=again)


def test_a_result_that_does_not_outlive_the_process_is_refused(files: dict[str, Any], tmp_path: Path) -> None:
    copied = np.memmap(tmp_path / "out", np.float32, "c", shape=(M, N))
    empty = np.empty((M, N), np.float32)
    for out in (None, empty, copied, MemoryStore(empty), Hdf5Store(empty, str(tmp_path / "in memory"), "/x")):
        with pytest.raises(UsageError, match="checkpoint needs an out that outlives this process"):
            resume({**files, "out": out}, tmp_path)
    with pytest.raises(UsageError, match="c is out, so a resumed run would find parts of c overwritten"):
        resume(files, tmp_path, c=files["out"], beta=1.0)
    with pytest.raises(UsageError, match=r"checkpoint .*journal: there is no folder .*nowhere; make it"):
        gemmlab.gemm(files["a"], files["b"], out=files["out"], checkpoint=tmp_path / "nowhere" / "journal")
    with pytest.raises(UsageError, match=r"checkpoint .* is a folder; name a file in it"):
        gemmlab.gemm(files["a"], files["b"], out=files["out"], checkpoint=tmp_path)
    assert not (tmp_path / "journal").exists()
