"""Folders of the checkout that tests read."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
RESULTS = ROOT / "benchmarks" / "results"
DATA = TESTS / "data"
SUPPORT = TESTS / "support"
