"""Stored choices: merged, read once, used by the next process, and left alone where something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import RecordError, UsageError
from gemmlab.devices.cpu import CpuDevice
from gemmlab.dispatch import choice_store
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice import choice_for
from gemmlab.dispatch.choice_store import EVERY, Entry, machine_of_cpu, machine_of_gpu
from gemmlab.dispatch.choice_values import TUNED, Choice
from gemmlab.dispatch.storage import Stored, stored
from gemmlab.dispatch.waves import Gpu, gpu_model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.digest import source_digest
from gemmlab.tuning import library_tuning, processor_tuning
from gemmlab.tuning.choice_times import Request
from gemmlab.tuning.store_file import add, export, forget, import_file
from gemmlab.tuning.store_file import stored as entries

H200 = machine_of_gpu("NVIDIA H200", "13.0")
HERE = replace(gpu_model("H200"), name="NVIDIA H200", machine=H200)
ENTRY = Entry(
    H200, "gemm", "300x200x100", "highest", "vector_load", dict(find_kernel("vector_load").params), 10.0, 12.0,
    source_digest(find_kernel("vector_load")), "2026-11-22T10:00:00+00:00",
)  # fmt: skip
CPU = Entry(
    machine_of_cpu(), "gemm", EVERY, "highest", "threaded", {**find_kernel("threaded").params, "KC": 256}, 10.0, 11.0,
    source_digest(find_kernel("threaded")), "2026-11-22T10:00:00+00:00",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GEMMLAB_TUNED")
    forget_reading()


def forget_reading() -> None:
    for cached in (choice_store._entries, choice_store._of_machine, choice_store._warn):
        cached.cache_clear()
    choice_store._objections.clear()


def product() -> Stored:
    a, b, c = (np.zeros(shape, np.float32) for shape in ((300, 100), (100, 200), (300, 200)))
    found = stored(a, b, c, 1.0, 0.0, ())
    assert found is not None
    return found


def call(**options: Any) -> Call:
    values: dict[str, Any] = {
        "alpha": 1.0, "beta": 0.0, "trans_a": False, "trans_b": False, "threads": None, "precision": "highest",
        "kernel": None, "config": None, "reproducible": False, **options,
    }  # fmt: skip
    return Call(None, None, None, None, **values)


def chosen(where: Gpu = HERE, **options: Any) -> Choice:
    return choice_for(call(**options), product(), where)


def test_a_stored_choice_is_taken_and_says_so() -> None:
    shipped = chosen()
    add([ENTRY])
    forget_reading()
    found = chosen()
    assert (found.kernel, found.config, found.basis) == ("vector_load", ENTRY.config, TUNED)
    assert "10.0 us against 12.0 us of the shipped choice" in found.reason
    assert found.order != shipped.order
    assert chosen(replace(HERE, machine=machine_of_gpu("NVIDIA H200", "12.9"))).basis != TUNED
    assert chosen(gpu_model("H200")).basis != TUNED


def test_a_running_process_never_switches() -> None:
    shipped = chosen()
    add([ENTRY])
    assert chosen() == shipped


@pytest.mark.parametrize("options", [{"reproducible": True}, {"precision": "tf32"}, {"kernel": "naive"}])
def test_a_call_that_asks_for_something_else_gets_the_shipped_choice(options: dict[str, Any]) -> None:
    add([ENTRY])
    assert chosen(**options).basis != TUNED


def test_the_switch_gives_the_shipped_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    add([ENTRY])
    monkeypatch.setenv("GEMMLAB_TUNED", "0")
    assert chosen().basis != TUNED


def test_stale_entries_fall_back_with_one_warning() -> None:
    add([replace(ENTRY, digest="0"), replace(ENTRY, digest="0", precision="tf32")])
    with pytest.warns(RuntimeWarning, match="the source of vector_load has changed since 2026"):
        assert chosen().basis != TUNED
    # Warnings are errors here: there is no second one.
    assert chosen(precision="tf32").basis != TUNED
    assert chosen().basis != TUNED


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "gemmlab.choices-of-machines/2", "entries": []}'])
def test_a_damaged_store_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data" / "choices.json"
    add([ENTRY])
    path.write_text(text)
    forget_reading()
    with pytest.warns(RuntimeWarning, match="the shipped choices are used"):
        assert chosen().basis != TUNED
    with pytest.raises(RecordError, match=r"choices\.json"):
        add([ENTRY])
    assert path.read_text() == text


def test_a_store_that_cannot_be_changed_is_known_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_of: object, **_options: object) -> None:
        raise AssertionError("the search began")

    monkeypatch.setattr(processor_tuning, "tune", unwanted)
    request = Request(CpuDevice(), "warm", 1.0, [], tmp_path)
    add([CPU])
    (tmp_path / "data" / "choices.json").write_text("{")
    with pytest.raises(RecordError, match=r"choices\.json is not JSON"):
        next(library_tuning.tune_library(request))
    lock = tmp_path / "data" / "choices.json.lock"
    lock.unlink()
    lock.mkdir()
    with pytest.raises(UsageError, match=r"choices cannot be stored in .*data: "):
        next(library_tuning.tune_library(request))


def test_fields_of_later_versions_are_ignored(tmp_path: Path) -> None:
    add([ENTRY])
    path = tmp_path / "data" / "choices.json"
    data = json.loads(path.read_text())
    data["entries"][0]["later"] = data["later"] = 1
    path.write_text(json.dumps(data))
    assert entries() == {ENTRY.key: ENTRY}


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_a_store_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    add([ENTRY])
    (tmp_path / "data" / "choices.json").chmod(0o666)
    forget_reading()
    with pytest.warns(RuntimeWarning, match="may belong to another user"):
        assert chosen().basis != TUNED


def test_stores_of_machines_merge_and_the_later_measurement_stays(tmp_path: Path) -> None:
    add([ENTRY, CPU])
    assert export(tmp_path / "a.json") == 2
    assert forget(H200) == 1
    add([replace(CPU, us=9.0, taken="2026-11-23T10:00:00+00:00")])
    assert import_file(tmp_path / "a.json") == (2, [])
    assert entries()[ENTRY.key] == ENTRY
    assert entries()[CPU.key].us == 9.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"config": {"BM": 3}}, "constraints"), ({"config": {"XX": 1}}, "unknown parameter"),
        ({"kernel": "nothing"}, "no kernel named"), ({"kernel": "packed", "config": {}}, "a kernel for gemm on cpu"),
        ({"us": -1.0}, "not both positive"), ({"op": None}, "for None|vector_load is a kernel for gemm"),
    ],
)  # fmt: skip
def test_an_import_with_a_bad_entry_changes_nothing(tmp_path: Path, change: dict[str, object], said: str) -> None:
    add([ENTRY])
    export(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    data["entries"][0] |= change
    (tmp_path / "a.json").write_text(json.dumps(data))
    forget(H200)
    with pytest.raises(RecordError, match=said):
        import_file(tmp_path / "a.json")
    assert entries() == {}


def test_an_import_leaves_out_what_another_version_measured(tmp_path: Path) -> None:
    add([replace(ENTRY, digest="0"), CPU])
    export(tmp_path / "a.json")
    forget(H200)
    count, left_out = import_file(tmp_path / "a.json")
    assert count == 1
    assert "the source of vector_load has changed" in left_out[0]


MANY = """
import sys
from collections.abc import Sequence
from dataclasses import replace
from gemmlab.dispatch.choice_store import Entry
from gemmlab.tuning.store_file import add
entry = Entry({machine!r}, "gemm", "", "highest", "naive", {{}}, 1.0, 1.0, "0", "2026-11-22T10:00:00+00:00")
for place in range(20):
    add([replace(entry, product=f"{{sys.argv[1]}}-{{place}}")])
"""


@pytest.mark.in_turns(20)
def test_two_processes_that_store_at_once_lose_nothing() -> None:
    program = MANY.format(machine=H200)
    running = [subprocess.Popen([sys.executable, "-c", program, name], env=dict(os.environ)) for name in "ab"]
    assert [one.wait(60) for one in running] == [0, 0]
    assert len(entries()) == 40


NEXT = """
import json, numpy as np, gemmlab
a, b = np.ones((70, 300), np.float32), np.ones((300, 90), np.float32)
assert (gemmlab.gemm(a, b) == 300).all()
choice = gemmlab.explain_choice(a, b)
print(json.dumps([choice.basis, dict(choice.config), choice.reason]))
"""


@pytest.mark.in_turns(20)
def test_the_next_process_computes_with_the_tuned_configuration() -> None:
    def run(**variables: str) -> list[object]:
        done = subprocess.run(
            [sys.executable, "-c", NEXT], env={**os.environ, **variables}, capture_output=True, text=True, check=True
        )
        found: list[object] = json.loads(done.stdout)
        return found

    add([CPU])
    basis, config, reason = run()
    assert (basis, config) == (TUNED, dict(CPU.config))
    assert "1.100 x as fast as the shipped configuration" in str(reason)
    assert run(GEMMLAB_TUNED="0")[0] == "rule"


def test_nothing_of_it_is_imported_with_the_package() -> None:
    program = "import sys, gemmlab; print([n for n in sys.modules if 'choice_store' in n or 'tuning' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_reasons_name_the_store_on_a_processor() -> None:
    add([CPU])
    found = gemmlab.explain_choice(np.ones((3, 4), np.float32), np.ones((4, 5), np.float32))
    assert found.basis == TUNED
    assert found.config["KC"] == 256


@pytest.mark.parametrize(
    ("again", "config", "shipped_us", "us"),
    [
        # The search's winner was lucky; the next one is faster by more than one percent, or nothing is.
        ({"A": 100.0, "B": 101.0, "C": 97.0}, {"KC": 3}, 100.0, 97.0),
        ({"A": 100.0, "B": 99.5, "C": 99.2}, {"KC": 1}, 100.0, 100.0),
        # A configuration that fails now does not win.
        ({"A": 100.0, "C": 90.0}, {"KC": 3}, 100.0, 90.0),
    ],
)
def test_a_processors_finalists_are_timed_again_beside_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: dict[str, float], config: dict[str, int], shipped_us: float,
    us: float,
) -> None:  # fmt: skip
    rows = [SimpleNamespace(config={"KC": number}, us=float(number)) for number in (2, 3, 1)]
    # The search's time counts all its runs, those before this process too.
    found = SimpleNamespace(default=rows[-1], rows=tuple(rows), digest="d", seconds=31.0)

    def search(_of: Any, budget_s: float, *_more: Any, fresh: bool, **_options: Any) -> Any:
        assert (budget_s, fresh) == (30.0, True)
        return found

    monkeypatch.setattr(processor_tuning, "tune", search)

    def timed(_request: Request, _problems: Any, specs: Sequence[Any], *more: float) -> dict[str, float]:
        assert [spec.config["KC"] for spec in specs] == [1, 2, 3]
        assert more[-1] == 9.0
        return {spec.name: again[name] for spec, name in zip(specs, "ABC", strict=True) if name in again}

    monkeypatch.setattr(processor_tuning, "median_times", timed)
    entry = processor_tuning.processor_entry(Request(CpuDevice(), "warm", 40.0, [], tmp_path, fresh=True))
    assert (entry.config, entry.shipped_us, entry.us) == (config, shipped_us, us)
