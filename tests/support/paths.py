"""Folders of the checkout that tests read."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
RESULTS = ROOT / "benchmarks" / "results"
CPU = "cpu-intel-6-167"
"""A folder of records of a CPU."""
DATA = TESTS / "data"
SUPPORT = TESTS / "support"
