"""A product is resumed with its own operands, result and software only: any other is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.pieces import large_product
from gemmlab.pieces.array_identity import digest
from gemmlab.pieces.block_sources import ArraySource, Block, StoreSource
from support.resumed_pieces import K, M, N, begin, lines, resume
from support.stores import MemoryStore, PlacedStore, Store


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
    from gemmlab.pieces import piece_devices

    begin(files, tmp_path)
    monkeypatch.setattr(piece_devices.CpuPieces, "model", "a processor")
    with pytest.raises(UsageError, match=r"device was .*, is a processor"):
        resume(files, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(large_product, "__version__", "9")
    with pytest.raises(UsageError, match=r"version was .*, is 9"):
        resume(files, tmp_path)
