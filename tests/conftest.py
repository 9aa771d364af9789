"""Options of the suite: the quick run, what must not be skipped, a record of a run; the fuzzers with their `trials`.

A fuzzer's seed is new at each run unless it is given.
"""

import gc
import os
import secrets
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support.needed import NEEDS, must_run
from support.quick import MARKERS, QUICK, TURN, split
from support.recorded_run import RECORD, write_run
from support.trials import Trials

SEED = "fuzz_seed"
STARTED = pytest.StashKey[float]()
SIMULATED = "simulated tiles"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(QUICK, action="store_true", help="leave out slow tests and thin long lists of cases")
    today = int(time.time()) // 86400
    parser.addoption(TURN, type=int, default=today, help="the turn of tests and cases that --quick thins; the day's")
    parser.addoption(NEEDS, default="", metavar="WORD,...", help="fail tests that are skipped for a reason with a WORD")
    parser.addoption(RECORD, type=Path, metavar="FILE", help="write the run's counts and duration to FILE")
    group = parser.getgroup("fuzz", "fuzzers (tests/fuzz)")
    group.addoption("--fuzz-seed", dest=SEED, type=int, help="seed of the fuzzers; a new one each run by default")
    group.addoption("--fuzz-seconds", type=float, default=1.0, help="seconds that each fuzzer runs (default 1)")
    group.addoption("--fuzz-trial", type=int, help="run this one trial of each fuzzer, as a failure names it")


# How long an example takes says more of what else the machine does than of the code.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gemmlab", untimed)
settings.register_profile("quick", untimed, max_examples=15)
settings.load_profile("gemmlab")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist take the options of the process that started them, so all of them have one seed.
    if getattr(config.option, SEED) is None:
        setattr(config.option, SEED, secrets.randbelow(2**32))
    config.stash[STARTED] = time.time()
    # Python looks for cycles 30 times less often than by default: that took a tenth of the processor time of a run.
    gc.set_threshold(20_000, 10, 10)
    # Tables of tests are as wide as for any pipe, whatever the terminal or a worker of xdist says.
    os.environ.pop("COLUMNS", None)
    # What somebody measured on this machine changes no test.
    os.environ["GEMMLAB_TUNED"] = "0"
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getoption(QUICK):
        settings.load_profile("quick")
        # Hypothesis also draws the constants of the package. To read them it parses every module in every process.
        setattr(providers, "is_local_module_file", lambda _path: False)  # noqa: B010 - no part of its interface


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(QUICK):
        take_turns_if_simulated(items)
        items[:], rest = split(items, config.getoption(TURN))
        config.hook.pytest_deselected(items=rest)


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    return ("passed", ".", "PASSED with simulated tiles") if report.passed and was_simulated(report) else None


def was_simulated(report: pytest.CollectReport | pytest.TestReport) -> bool:
    return isinstance(report, pytest.TestReport) and report.when == "call" and SIMULATED in dict(report.user_properties)


def take_turns_if_simulated(items: list[pytest.Item]) -> None:
    """Mark tests with simulated tiles as slow ones: compiling a kernel takes seconds that other machines do without."""
    found = [item for item in items if "tiles" in getattr(item, "fixturenames", ())]
    if found:
        from gemmlab.devices.cpu_tiles import tiles_refusal

        for item in found if tiles_refusal() else ():
            item.add_marker(pytest.mark.in_turns(20))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if simulated := sum(was_simulated(report) for report in terminalreporter.stats.get("passed", [])):
        terminalreporter.write_line(f"{simulated} passed with simulated AMX tiles")
    path = config.getoption(RECORD)
    if path is not None:
        write_run(terminalreporter, config.stash[STARTED], path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return must_run((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return must_run((yield), collector.config)


def pytest_report_header(config: pytest.Config) -> str:
    turn = f" {TURN}={config.getoption(TURN)}" if config.getoption(QUICK) else ""
    return f"repeat it with: --fuzz-seed={getattr(config.option, SEED)}{turn}"


@pytest.fixture
def tiles(request: pytest.FixtureRequest) -> Iterator[None]:
    """AMX tiles, simulated where the processor has none."""
    from gemmlab.devices.cpu_tiles import tiles_refusal

    if not tiles_refusal():
        yield
        return
    from support.simulated_tiles import simulated_tiles

    with simulated_tiles() as refusal:
        if refusal:
            pytest.skip(f"amx_bf16x6 {refusal}")
        request.node.user_properties.append((SIMULATED, True))
        yield


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    """Random trials; a failure prints the options that repeat the trial it failed in."""
    option = request.config.option
    made = Trials(option.fuzz_seed, request.node.name, option.fuzz_seconds, option.fuzz_trial)
    yield made
    # Shown with the output of a test that failed.
    print(f"{request.node.nodeid}: trial {made.number}; repeat it with {made.rerun}")
