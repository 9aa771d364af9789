"""An interrupted product goes on from what is complete, also after the process was killed; any other is refused."""

from __future__ import annotations

import json
import mmap
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.errors import RecordError, UsageError
from gemmlab.pieces import large_product
from gemmlab.pieces.array_identity import digest
from gemmlab.pieces.block_sources import ArraySource, Block, StoreSource
from support.amx_model import needs_tiles
from support.least_pieces import Stopped, in_two_runs, smallest, stop_at
from support.stores import Hdf5Store, MemoryStore, PlacedStore, Store

Float32Array = npt.NDArray[np.float32]
M, N, K, MEMORY = 500, 400, 300, 700_000
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


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    made = {}
    for name, shape in (("a", (M, K)), ("b", (K, N)), ("c", (M, N)), ("out", (M, N))):
        made[name] = np.memmap(tmp_path / name, np.float32, "w+", shape=shape)
        made[name][:] = np.nan if name == "out" else rng.random(shape, dtype=np.float32)
        made[name].flush()
    return made


def run(folder: Path, how: str, at: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), how, str(at)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def lines(folder: Path) -> list[dict[str, Any]]:
    whole = (folder / "journal").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in whole]


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


def begin(files: dict[str, Any], folder: Path, at: int = 3, **how: Any) -> None:
    """Compute a few pieces."""
    with pytest.raises(Stopped):
        resume(files, folder, progress=stop_at(at), **how)


def resume(files: dict[str, Any], folder: Path, **how: Any) -> Any:
    given = {"a": files["a"], "b": files["b"], "out": files["out"], "memory_bytes": MEMORY, **how}
    return gemmlab.gemm(**given, checkpoint=folder / "journal")


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
    ("how", "words"),
    [
        ({"alpha": 2.0}, r"alpha was 1\.0, is 2\.0"),
        ({"precision": "bf16x3"}, None),
        ({"reproducible": True}, "reproducible was False, is True"),
        ({"kernel": "packed"}, "kernel was threaded, is packed"),
        ({"config": {"KC": 320}}, "config was .*, is .*'KC': 320"),
        (
            {"memory_bytes": 300_000},
            "memory_bytes is 300,000; the checkpoint .*nal was begun with pieces of .*; allow as much, or remove .*nal",
        ),
    ],
)
def test_another_product_is_refused(
    files: dict[str, Any], tmp_path: Path, how: dict[str, Any], words: str | None
) -> None:  # fmt: skip
    begin(files, tmp_path)
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(gemmlab.GemmlabError, match=words):
        resume(files, tmp_path, **how)
    assert (tmp_path / "journal").read_bytes() == before


def test_other_files_are_refused(files: dict[str, Any], tmp_path: Path) -> None:
    begin(files, tmp_path)
    other = {**files, "a": np.memmap(tmp_path / "a2", np.float32, "w+", shape=(M, K))}
    other["a"][:] = files["a"]
    with pytest.raises(UsageError, match=r"is the checkpoint of another product: file of a was .*/a, is .*/a2"):
        resume(other, tmp_path)
    elsewhere = {**files, "out": np.memmap(tmp_path / "out2", np.float32, "w+", shape=(M, N))}
    with pytest.raises(UsageError, match=r"file of out was .*, is .*out2"):
        resume(elsewhere, tmp_path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_pieces_of_a_mapped_result_have_long_lines(tmp_path: Path, order: Any) -> None:
    """Each piece is flushed, and with it the whole pages of its lines."""
    extent = 1500
    a = np.ones((extent, extent), np.float32)
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=a.shape, order=order)
    with pytest.raises(Stopped):
        gemmlab.gemm(a, a, out=out, memory_bytes=6 << 20, checkpoint=tmp_path / "journal", progress=stop_at(1))
    head = lines(tmp_path)[0]
    down, across = -(-extent // head["rows"]), -(-extent // head["cols"])
    cuts = across if order == "C" else down
    assert extent * cuts * mmap.PAGESIZE <= 4 * out.nbytes
    assert (head["rows"] < head["cols"]) == (order == "C")


def test_a_store_is_known_by_its_real_path(
    files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A run goes on with the same store under another spelling, but not with one of that name in another folder."""
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    values = {name: np.array(files[name]) for name in ("a", "b", "out")}

    def of(root: Path, kind: Callable[..., Store]) -> dict[str, Any]:
        return {name: kind(values[name], str(root / name)) for name in values}

    monkeypatch.chdir(folders[0])
    relative = of(Path(), PlacedStore)
    begin(relative, tmp_path)
    monkeypatch.chdir(folders[1])
    place = re.escape(str(folders[0] / "a"))
    with pytest.raises(UsageError, match=rf"store of a was {place}, is .*/other/a; .* remove"):
        resume(of(Path(), PlacedStore), tmp_path)
    resume(of(folders[0], PlacedStore), tmp_path)
    expected = gemmlab.gemm(values["a"], values["b"])
    assert np.array_equal(values["out"].view(np.uint32), expected.view(np.uint32))


def test_a_store_in_memory_is_known_by_its_elements(files: dict[str, Any], tmp_path: Path) -> None:
    """As an array in memory, which has another address in the next process."""
    begin({**files, "a": MemoryStore(files["a"])}, tmp_path)
    resume({**files, "a": MemoryStore(files["a"])}, tmp_path)


@pytest.mark.parametrize("kind", ["memory", "mapped for writing", "mapped for reading", "store", "store in chunks"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_an_operand_with_one_other_element_is_refused(
    files: dict[str, Any], tmp_path: Path, kind: str, name: str
) -> None:
    """Wherever it lies, and though a mapped file keeps the time of its last change until it is flushed."""
    kinds: dict[str, Callable[[Any], Any]] = {
        "memory": np.array, "mapped for writing": lambda x: x, "store": lambda x: Store(np.array(x)),
        "mapped for reading": lambda x: np.memmap(x.filename, np.float32, "r", shape=x.shape),
        "store in chunks": lambda x: Store(np.array(x), chunks=(70, 90)),
    }  # fmt: skip
    given = {**files, **{each: kinds[kind](files[each]) for each in "abc"}}
    how = {"c": given["c"], "beta": 0.5}
    begin(given, tmp_path, **how)
    before = (tmp_path / "journal").read_bytes()
    changed = files[name] if kind == "mapped for reading" else getattr(given[name], "values", given[name])
    place = 3, 130
    kept, changed[place] = changed[place], 1000
    stat = (tmp_path / name).stat()
    os.utime(tmp_path / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(UsageError, match=rf"gemm: {name}.* holds other numbers than when this checkpoint was begun"):
        resume(given, tmp_path, **how)
    assert (tmp_path / "journal").read_bytes() == before
    changed[place] = kept
    resume(given, tmp_path, **how)
    expected = gemmlab.gemm(*(np.asarray(files[each]) for each in "ab"), c=np.asarray(files["c"]), beta=0.5)
    assert np.array_equal(files["out"].view(np.uint32), expected.view(np.uint32))


def test_a_result_with_one_other_element_is_noticed(files: dict[str, Any], tmp_path: Path) -> None:
    begin(files, tmp_path)
    files["out"][3, 7] += 1
    with pytest.raises(UsageError, match=r"says that piece \(0, 0\) is complete, but out holds something else"):
        resume(files, tmp_path)


@pytest.mark.parametrize("chunks", [None, (7, 11), (64, 300), (1000, 1000)])
def test_a_digest_does_not_depend_on_how_much_is_read_at_a_time(chunks: tuple[int, int] | None) -> None:
    values = np.random.default_rng(5).random((400, 500), dtype=np.float32)
    for block in (None, Block(0, 0, 0, 0), Block(13, 300, 21, 400)):
        source = StoreSource(Store(values, chunks=chunks))
        found = {digest(source, block, most) for most in (0, 10_000, 300_000, 1 << 30)}
        assert len(found) == 1
        if chunks is None:
            assert found == {digest(ArraySource(values, values), block)}


def test_a_journal_of_an_earlier_schema_is_refused(files: dict[str, Any], tmp_path: Path) -> None:
    begin(files, tmp_path)
    head, *rest = lines(tmp_path)
    content = "".join(json.dumps(line) + "\n" for line in ({**head, "schema": "gemmlab.pieces/1"}, *rest)).encode()
    (tmp_path / "journal").write_bytes(content)
    with pytest.raises(UsageError, match=r"another version of gemmlab: its schema is gemmlab\.pieces/1, this version"):
        resume(files, tmp_path)
    assert (tmp_path / "journal").read_bytes() == content


def test_a_result_made_anew_is_noticed(files: dict[str, Any], tmp_path: Path) -> None:
    begin(files, tmp_path)
    fresh = np.memmap(tmp_path / "out", np.float32, "w+", shape=(M, N))
    with pytest.raises(UsageError, match=r"says that piece \(0, 0\) is complete, but out holds something else"):
        resume({**files, "out": fresh}, tmp_path)


def test_another_version_and_another_processor_are_refused(
    files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gemmlab.pieces import large_product, piece_devices

    begin(files, tmp_path)
    monkeypatch.setattr(piece_devices.CpuPieces, "model", "a processor")
    with pytest.raises(UsageError, match=r"device was .*, is a processor"):
        resume(files, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(large_product, "__version__", "9")
    with pytest.raises(UsageError, match=r"version was .*, is 9"):
        resume(files, tmp_path)


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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    extents=st.tuples(st.integers(2, 420), st.integers(1, 300), st.integers(1, 90)),
    chunks=st.tuples(st.integers(1, 150), st.integers(1, 150)), at=st.integers(1, 4), turned=st.booleans(),
    factors=st.sampled_from([(1.0, 0.0), (-2.0, 0.25)]), reproducible=st.booleans(),
)  # fmt: skip
@example(extents=(420, 300, 90), chunks=(10, 6), at=2, turned=False, factors=(1.0, 0.0), reproducible=False)
def test_pieces_are_whole_chunks_of_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extents: tuple[int, int, int], chunks: tuple[int, int], at: int,
    *, turned: bool, factors: tuple[float, float], reproducible: bool,
) -> None:  # fmt: skip
    """Whatever multiples they have in common with a kernel's tile, they have the bits of one piece."""
    monkeypatch.setattr(large_product, "cut", smallest)
    m, n, k = extents
    rng = np.random.default_rng(m + n + k)
    a, b, c = (rng.random(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
    how: dict[str, Any] = {"a": a, "b": np.asfortranarray(b) if turned else b, "reproducible": reproducible}
    how |= {"alpha": factors[0], "beta": factors[1], "c": c if factors[1] else None}
    out = Store(np.full((m, n), np.nan, np.float32), chunks)
    (tmp_path / "journal").unlink(missing_ok=True)
    in_two_runs(at, **how, out=out, checkpoint=tmp_path / "journal")
    assert out.whole_chunks_were_written()
    assert np.array_equal(out.values.view(np.uint32), gemmlab.gemm(**how).view(np.uint32))


@needs_tiles
@pytest.mark.parametrize(("precision", "kernel"), [("float32", None), ("bf16x6", None), ("bf16x6", "amx_bf16x6")])
def test_whole_chunks_have_the_bits_of_tiles(tmp_path: Path, precision: str, kernel: str | None) -> None:
    """AMX tiles compute a block of 32 x 32 by a method that depends on the elements of all of it."""
    rng = np.random.default_rng(9)
    a, b = (rng.random(shape, dtype=np.float32) for shape in ((700, 300), (300, 800)))
    a[[100, 333]] *= np.float32(1e-38)
    b[:, [299, 555]] *= np.float32(2.0**100)
    how: dict[str, Any] = {"a": a, "b": b, "precision": precision, "kernel": kernel}
    out = Store(np.full((700, 800), np.nan, np.float32), (10, 6))
    complete, count = in_two_runs(2, **how, out=out, memory_bytes=3_000_000, checkpoint=tmp_path / "journal")
    assert 0 < complete < count
    assert out.whole_chunks_were_written()
    assert np.array_equal(out.values.view(np.uint32), gemmlab.gemm(**how).view(np.uint32))


def test_chunks_without_a_small_common_multiple_with_the_tile(tmp_path: Path) -> None:
    """A common multiple of chunks of 1000 and a CPU's tile, 12000 x 8000, would be the whole result."""
    shape = (9000, 7000)
    a, b = np.ones((shape[0], 2), np.float32), np.ones((2, shape[1]), np.float32)
    out = Store(np.zeros(shape, np.float32), (1000, 1000))
    complete, count = in_two_runs(2, a=a, b=b, out=out, memory_bytes=60 << 20, checkpoint=tmp_path / "journal")
    head = lines(tmp_path)[0]
    assert 0 < complete < count
    assert (head["rows"] % 1000, head["cols"] % 1000) == (0, 0)
    assert np.all(out.values == 2)
