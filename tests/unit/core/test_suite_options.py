"""The options of the suite itself, `--quick` and `--needs`, and its reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.quick import is_chosen, split

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

@pytest.mark.in_turns(2)
def test_odd(): pass

@pytest.mark.in_turns(2)
@pytest.mark.parametrize("n", range(3))
def test_even(n): pass

def test_skipped(): pytest.skip("no Chromium: apt-get install chromium")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makeini(f"[pytest]\npythonpath = {CONFTEST.parent}\naddopts = -p no:zarr\n")
    pytester.makepyfile(test_it=TESTS)
    return pytester


def test_every_test_runs_by_default(suite: pytest.Pytester) -> None:
    suite.runpytest_inprocess("-p", "no:xdist").assert_outcomes(passed=26, skipped=1)


@pytest.mark.parametrize(
    ("turn", "chosen"),
    [
        (0, ["cases[[]0]", "cases[[]3]", "cases[[]6]", "one_slow_case[[]1]", "more_cases[[]0]", "even[[]0]"]),
        (8, ["cases[[]1]", "cases[[]4]", "cases[[]8]", "one_slow_case[[]1]", "more_cases[[]8]", "even[[]1]"]),
        (9, ["cases[[]2]", "cases[[]5]", "cases[[]9]", "one_slow_case[[]1]", "more_cases[[]0]", "odd "]),
    ],
)
def test_a_quick_run_leaves_out_slow_tests_and_thins_cases(
    suite: pytest.Pytester, turn: int, chosen: list[str]
) -> None:
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", f"--quick-turn={turn}", "-v")
    result.assert_outcomes(passed=6, skipped=1, deselected=20)
    result.stdout.fnmatch_lines([f"repeat it with: --fuzz-seed=* --quick-turn={turn}"])
    result.stdout.fnmatch_lines_random([f"*test_{name}*" for name in chosen])


@pytest.mark.in_turns(2)
@pytest.mark.parametrize(("words", "failed"), [("torch", 0), ("torch,chromium", 1)])
def test_a_test_that_must_run_is_not_skipped(suite: pytest.Pytester, words: str, failed: int) -> None:
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", "--needs", words)
    result.assert_outcomes(passed=6, skipped=1 - failed, failed=failed, deselected=20)
    if failed:
        result.stdout.fnmatch_lines(["*chromium should be here (--needs): *no Chromium: apt-get install chromium"])


def test_a_module_that_must_be_collected_is_not_skipped(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other='import pytest\npytest.importorskip("no_such_package")\n')
    suite.runpytest_inprocess("-p", "no:xdist", "--quick").assert_outcomes(passed=6, skipped=2, deselected=20)
    result = suite.runpytest_inprocess("-p", "no:xdist", "--quick", "--needs", "no_such_package")
    result.assert_outcomes(errors=1)


@pytest.mark.parametrize(("count", "wanted"), [(10, 3), (3, 5), (4, 1), (7, 6)])
def test_every_case_has_its_turn(count: int, wanted: int) -> None:
    turns = [[index for index in range(count) if is_chosen(index, count, wanted, turn)] for turn in range(count)]
    assert {len(chosen) for chosen in turns} == {min(count, wanted)}
    assert set().union(*turns) == set(range(count))


@pytest.mark.parametrize("turns", [2, 12])
def test_every_case_of_a_test_in_turns_has_its_turn(suite: pytest.Pytester, turns: int) -> None:
    text = f"@pytest.mark.in_turns({turns})\n@pytest.mark.parametrize('n', range(6))\ndef test_{{}}(n): pass\n"
    items = suite.getitems("import pytest\n" + "".join(text.format(name) for name in "abcd"))
    drawn = [{item.name for item in split(items, turn)[0]} for turn in range(6 * turns)]
    assert set().union(*drawn) == {item.name for item in items}


def test_a_report_says_what_passed_with_simulated_tiles(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="def test_so(record_property): record_property('simulated tiles', True)\n\ndef test_other(): pass"
    )
    result = suite.runpytest_inprocess("-p", "no:xdist", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_so PASSED with simulated tiles *", "1 passed with simulated AMX tiles"])
    result.stdout.fnmatch_lines(["*::test_other PASSED *"])
