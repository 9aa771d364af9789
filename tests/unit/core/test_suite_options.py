"""The options of the suite itself: `--quick` and `--needs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.quick import is_chosen

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[2] / "conftest.py"
TESTS = """
import pytest

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", range(10))
def test_cases(n): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_one_slow_case(n): pass

@pytest.mark.parametrize("n", range(9))
def test_more_cases(n): pass

def test_skipped(): pytest.skip("no Chromium: apt-get install chromium")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makeini(f"[pytest]\npythonpath = {CONFTEST.parent}\n")
    pytester.makepyfile(TESTS)
    return pytester


def test_every_test_runs_by_default(suite: pytest.Pytester) -> None:
    suite.runpytest_inprocess("-p", "no:xdist").assert_outcomes(passed=22, skipped=1)


def test_a_quick_run_leaves_out_slow_tests_and_thins_cases(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", "-v")
    result.assert_outcomes(passed=5, skipped=1, deselected=17)
    result.stdout.fnmatch_lines(["*test_cases[[]0]*", "*test_cases[[]4]*", "*test_cases[[]9]*"])


@pytest.mark.parametrize(("words", "failed"), [("torch", 0), ("torch,chromium", 1)])
def test_a_test_that_must_run_is_not_skipped(suite: pytest.Pytester, words: str, failed: int) -> None:
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", "--needs", words)
    result.assert_outcomes(passed=5, skipped=1 - failed, failed=failed, deselected=17)
    if failed:
        result.stdout.fnmatch_lines(["*chromium should be here (--needs): *no Chromium: apt-get install chromium"])


def test_a_module_that_must_be_collected_is_not_skipped(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other='import pytest\npytest.importorskip("no_such_package")\n')
    suite.runpytest_inprocess("-p", "no:xdist", "--quick").assert_outcomes(passed=5, skipped=2, deselected=17)
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", "--needs", "no_such_package")
    result.assert_outcomes(errors=1)


@pytest.mark.parametrize(("count", "wanted", "chosen"), [(10, 3, {0, 4, 9}), (3, 5, {0, 1, 2}), (4, 1, {3})])
def test_chosen_cases_are_spread_over_the_list(count: int, wanted: int, chosen: set[int]) -> None:
    assert {index for index in range(count) if is_chosen(index, count, wanted)} == chosen
