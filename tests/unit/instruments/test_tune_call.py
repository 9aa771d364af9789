"""`gemmlab.tune` from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import gemmlab
from gemmlab.core.errors import UsageError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_DATA_DIR", str(tmp_path))


@pytest.mark.slow
def test_the_result_is_a_table_with_the_best_configuration() -> None:
    seen = list[tuple[str, int, int]]()
    found = gemmlab.tune("cache_block", sizes=32, budget_s=40, progress=lambda *now: seen.append(now))
    rows = found.rows()
    assert rows[0]["us"] == min(row["us"] for row in rows)
    assert any(all(row[name] == value for name, value in found.best.items()) for row in rows)
    assert 50 <= seen[-1][2] <= 60, "blocks depend on the processor's caches, and equal ones are one"
    assert seen[-1][1] <= seen[-1][2]
    assert "cache_block at 32x32x32" in str(found)
    assert found.to_csv().startswith("kernel,size,device,predicted,")
    assert found.to_json()["tunings"][0]["predicted"] is False


@pytest.mark.parametrize("budget", [0.0, -1.0, float("inf"), float("nan")])
def test_a_budget_is_a_number_of_seconds(budget: float) -> None:
    with pytest.raises(UsageError, match="budget_s"):
        gemmlab.tune("packed", budget_s=budget)


def test_a_kernel_of_another_device_is_refused() -> None:
    with pytest.raises(UsageError, match="naive is a kernel for cuda"):
        gemmlab.tune("naive")
