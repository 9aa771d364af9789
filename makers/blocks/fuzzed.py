"""The block on the number of random products that were checked, from the record that
`makers/fuzz_products.py` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.records import load_json

RECORD = "fuzz.json"
SCHEMA = "gemmlab.fuzz/1"


def fuzzed(record: Mapping[str, Any]) -> str:
    """Return one sentence: the number of random products, calls and wrong results, and how they were drawn."""
    extents = [f"{name} {record['ranges'][name][0]} to {record['ranges'][name][1]}" for name in ("m", "n", "k")]
    return (
        f"{record['products']:,} random products in {record['calls']:,} calls of `{record['call']}`, "
        f"{record['wrong'] or 'none'} wrong ({', '.join(extents)}; seed {record['seed']}; version {record['version']}, "
        f"{record['cpu']}, NumPy {record['numpy']}, Python {record['python']}, {record['taken']})."
    )


def _block() -> str:
    record = load_json(RECORD, SCHEMA)
    return "" if record is None else fuzzed(record)


BLOCKS: Mapping[str, Callable[[], str]] = {"fuzzed": _block}
