"""The forecast for many cores: its tables fill from a record, and the design is at no place worse than before."""

from __future__ import annotations

import json

import pytest

from blocks.many_cores import CORES, PRODUCTS, RECORD, SCHEMA, constants_table, forecast_table
from scaling.model import BEFORE, NOW, Constants, Machine, Product, forecast
from support.paths import RESULTS

CONSTANTS = Constants(
    multiply_add=0.01, a_element=0.1, b_element={"rows": 0.1, "columns": 0.2, "gaps": 0.9}, turn=500.0
)


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_no_product_is_forecast_to_be_slower_than_before(product: Product) -> None:
    for cores in CORES:
        before, now = (forecast(product, Machine(cores), CONSTANTS, design) for design in (BEFORE, NOW))
        assert now.time_ns <= before.time_ns * 1.03, cores
        assert 0 < now.efficiency(cores) <= 1


def test_one_core_takes_what_it_computes_and_fetches_and_no_turn() -> None:
    alone = forecast(Product(480, 320, 100), Machine(1), CONSTANTS, NOW)
    assert alone.turns_ns == 0
    assert alone.core_ns == pytest.approx(100 * (480 * 320 * 0.01 + 480 * 0.1 + 320 * 0.1))


def test_another_socket_makes_fetches_slower_and_memory_faster() -> None:
    one, two = Machine(64), Machine(128)
    assert one.distance == 1.0
    assert 1.0 < two.distance < 1.6
    product = Product(64, 4096, 4096)
    assert forecast(product, two, CONSTANTS, NOW).memory_ns < forecast(product, one, CONSTANTS, NOW).memory_ns


def test_the_tables_say_what_the_record_has() -> None:
    record = json.loads((RESULTS / RECORD).read_text(encoding="utf-8"))
    assert record["schema"] == SCHEMA
    assert f"{record['constants']['multiply_add']:.4g}" in constants_table(record)
    lines = forecast_table(record).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == len(PRODUCTS) + 2
