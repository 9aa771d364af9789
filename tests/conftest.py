"""Fuzzers (tests/fuzz): their options, and the `trials` of each. The seed is new at each run unless it is given."""

import secrets
from collections.abc import Iterator

import pytest

from support.trials import Trials

SEED = "fuzz_seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz", "fuzzers (tests/fuzz)")
    group.addoption("--fuzz-seed", dest=SEED, type=int, help="seed of the fuzzers; a new one each run by default")
    group.addoption("--fuzz-seconds", type=float, default=2.0, help="seconds that each fuzzer runs (default 2)")
    group.addoption("--fuzz-trial", type=int, help="run this one trial of each fuzzer, as a failure names it")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Workers of xdist take the options of the process that started them, so all of them have one seed.
    if getattr(config.option, SEED) is None:
        setattr(config.option, SEED, secrets.randbelow(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    return f"fuzz: --fuzz-seed={getattr(config.option, SEED)}"


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    """Random trials; a failure prints the options that repeat the trial it failed in."""
    option = request.config.option
    made = Trials(option.fuzz_seed, request.node.name, option.fuzz_seconds, option.fuzz_trial)
    yield made
    # Shown with the output of a test that failed.
    print(f"{request.node.nodeid}: trial {made.number}; repeat it with {made.rerun}")
