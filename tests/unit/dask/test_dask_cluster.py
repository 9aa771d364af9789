"""`gemmlab.dask.gemm` on a cluster of processes: the same bits, shared cores, dead workers, other versions."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask.array as da
import distributed

import gemmlab.dask
from gemmlab.core.errors import UsageError
from gemmlab.dask import task_graph, tasks
from gemmlab.dask.task_graph import tasks_on_a_host

WORKERS, THREADS = 2, 2
pytestmark = [
    pytest.mark.timeout(300),
    # What the cluster leaves to the garbage collector is not ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    spilled: Path = tmp_path_factory.mktemp("spilled")
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=THREADS, dashboard_address=None, local_directory=str(spilled)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def operands(m: int, n: int, k: int) -> tuple[Any, Any]:
    """Arrays that workers make themselves."""
    rng = da.random.default_rng(5)
    a = rng.standard_normal((m, k), chunks=(64, 100))
    b = rng.standard_normal((k, n), chunks=(100, 64))
    return a.astype(np.float32), b.astype(np.float32)


def test_bits_are_those_of_one_thread(client: Any) -> None:
    a, b = operands(150, 130, 1700)
    made = gemmlab.dask.gemm(a, b)
    np.testing.assert_array_equal(made.compute(), made.compute(scheduler="synchronous"))
    assert client.scheduler_info(n_workers=-1)["workers"]


def test_the_tasks_of_a_host_are_counted(client: Any) -> None:
    assert tasks_on_a_host() == WORKERS * THREADS
    del client


def test_a_worker_that_dies_is_replaced_and_changes_no_bit(client: Any) -> None:
    a, b = operands(200, 200, 1500)
    made = gemmlab.dask.gemm(a, b)
    expected = made.compute(scheduler="synchronous")
    found = client.compute(made)
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    np.testing.assert_array_equal(found.result(timeout=120), expected)


def test_another_version_is_an_error_of_the_call(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_graph, "Settings", partial(tasks.Settings, version="0.0.1"))
    a, b = operands(10, 10, 10)
    with pytest.raises(UsageError, match="install the same version on both"):
        gemmlab.dask.gemm(a, b).compute()
    del client
