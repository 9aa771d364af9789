"""The `trials` of a fuzzer. A failure prints the options that repeat the trial it failed in."""

from collections.abc import Iterator

import pytest
from trials import Trials


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    option = request.config.option
    made = Trials(option.fuzz_seed, request.node.name, option.fuzz_seconds, option.fuzz_trial)
    yield made
    # Shown with the output of a test that failed.
    print(f"{request.node.nodeid}: trial {made.number}; repeat it with {made.rerun}")
